// For the tests in C: checks that end the program, and ranks that are forked processes.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symm.h"

enum { kMaxRanks = 8 };

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, \
                    #condition, symm_last_error());                                     \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)
#define OK(call) CHECK((call) == SYMM_SUCCESS)
// The call fails with this result, and a text that contains these words.
#define FAILS(call, result, words) \
    CHECK((call) == (result) && strstr(symm_last_error(), (words)) != NULL)

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void sleep_ms(long ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

// ---- Ranks as processes. `ends[r]` are sockets between rank r and rank 0.

struct process {
    int rank, ranks;
    int (*ends)[2];
};

static inline void transfer(int socket, void* bytes, size_t count, int sends) {
    for (size_t done = 0; done < count;) {
        char* at = (char*)bytes + done;
        const ssize_t n = sends ? write(socket, at, count - done) : read(socket, at, count - done);
        CHECK(n > 0);
        done += (size_t)n;
    }
}

static inline int allgather(void* context, const void* mine, void* all, size_t bytes) {
    const struct process* self = context;
    char* parts = all;
    memcpy(parts + (size_t)self->rank * bytes, mine, bytes);
    if (self->rank != 0) {
        transfer(self->ends[self->rank][1], parts + (size_t)self->rank * bytes, bytes, 1);
        transfer(self->ends[self->rank][1], all, bytes * (size_t)self->ranks, 0);
        return 0;
    }
    for (int r = 1; r < self->ranks; ++r) {
        transfer(self->ends[r][0], parts + (size_t)r * bytes, bytes, 0);
    }
    for (int r = 1; r < self->ranks; ++r) {
        transfer(self->ends[r][0], all, bytes * (size_t)self->ranks, 1);
    }
    return 0;
}

// Runs `body` in a process per rank. Returns the ranks' wait statuses.
static inline void run_processes(int ranks, void (*body)(struct process*), int statuses[]) {
    int ends[kMaxRanks][2];
    pid_t children[kMaxRanks];
    for (int r = 0; r < ranks; ++r) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[r]) == 0);
    }
    for (int r = 0; r < ranks; ++r) {
        struct process self = {r, ranks, ends};
        children[r] = fork();
        CHECK(children[r] >= 0);
        if (children[r] == 0) {
            alarm(100);  // no rank outlives a test that was killed
            body(&self);
            exit(0);
        }
    }
    for (int r = 0; r < ranks; ++r) {
        CHECK(waitpid(children[r], &statuses[r], 0) == children[r]);
    }
}

static inline void expect_all_exit_0(int ranks, void (*body)(struct process*)) {
    int statuses[kMaxRanks];
    run_processes(ranks, body, statuses);
    for (int r = 0; r < ranks; ++r) {
        CHECK(WIFEXITED(statuses[r]) && WEXITSTATUS(statuses[r]) == 0);
    }
}

static inline symm_comm* met(struct process* self) {
    symm_comm* comm = NULL;
    OK(symm_comm_create_by_allgather(&comm, self->rank, self->ranks, allgather, self, NULL));
    return comm;
}
