// How programs in C end, and what their forked children do: 06_allreduce_c_endings_test. Its exit
// status is 0 if all is right. All cases run at the same time, since a peer is told of a program's
// end only after some seconds. A case's ranks are two forked processes, and rank 1 is the one that
// ends or forks. No wait of its peer's has a limit.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "ranks.h"

enum { kCount = 1001, kCode = 3 };

// For LeakSanitizer: the memory of what is not destroyed, and of a child's missing threads.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return 1;
}

static symm_comm* comm;  // this rank's, also for handlers and threads
static float* window;

static void queue_call(void) {
    OK(symm_all_reduce(comm, window, window, kCount, SYMM_FLOAT, SYMM_SUM, symm_comm_stream(comm)));
}
static void synchronize(void) {
    OK(symm_comm_synchronize(comm, symm_comm_stream(comm)));
}

static void start(struct process* self) {
    unsetenv("SYMM_TIMEOUT");
    comm = met(self);
    void* allocated = NULL;
    OK(symm_window_allocate(comm, kCount * sizeof(float), &allocated));
    window = allocated;
    queue_call();
    synchronize();
    char all[2];
    CHECK(allgather(self, "x", all, 1) == 0);  // both have the result
}

// ---- Endings of rank 1. Those that return end by exit(0).

static void stay(void) {
    while (1) {
        pause();
    }
}
static void start_thread(void* (*body)(void*)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
}
static void* exit_in_thread(void* unused) {
    (void)unused;
    exit(kCode);
}
static void* synchronize_in_thread(void* unused) {
    (void)unused;
    symm_comm_synchronize(comm, symm_comm_stream(comm));
    return NULL;
}
static void destroy_at_exit(void) {
    OK(symm_comm_destroy(comm));
}
static int destroys_at_unload = 0;
__attribute__((destructor)) static void unload(void) {
    if (destroys_at_unload) {
        OK(symm_comm_destroy(comm));
    }
}
static void* create_in_thread(void* unused) {
    (void)unused;
    char name[64];
    snprintf(name, sizeof name, "endings of %d", (int)getpid());
    symm_comm* other = NULL;
    symm_comm_create(&other, 0, 2, name, NULL);  // the other rank never comes
    return NULL;
}

static void returns(void) {}
static void exits(void) {
    exit(kCode);
}
static void exits_at_once(void) {
    _exit(kCode);
}
static void exits_quickly(void) {
    quick_exit(kCode);
}
static void exits_in_a_thread(void) {
    start_thread(exit_in_thread);
    stay();
}
static void exits_with_a_call_queued(void) {
    queue_call();
    exit(kCode);
}
static void exits_while_a_thread_synchronizes(void) {
    queue_call();
    start_thread(synchronize_in_thread);
    sleep_ms(50);
    exit(kCode);
}
static void exits_while_a_thread_creates(void) {
    start_thread(create_in_thread);
    sleep_ms(50);
    exit(kCode);
}
static void its_main_thread_ends(void) {
    start_thread(exit_in_thread);
    pthread_exit(NULL);
}
static void aborts(void) {
    queue_call();
    OK(symm_comm_abort(comm));
    exit(kCode);
}
static void aborts_and_destroys(void) {
    queue_call();
    OK(symm_comm_abort(comm));
    OK(symm_comm_destroy(comm));
}
static void destroys(void) {
    OK(symm_comm_destroy(comm));
}
static void destroys_in_a_handler(void) {
    CHECK(atexit(destroy_at_exit) == 0);
}
static void destroys_when_unloaded(void) {
    destroys_at_unload = 1;
}
static void becomes_another_program(void) {
    execl("/bin/sh", "sh", "-c", "exit 3", (char*)NULL);
}
static void is_terminated(void) {
    raise(SIGTERM);
}
static void crashes(void) {
    signal(SIGABRT, SIG_DFL);
    abort();
}

struct ending {
    const char* name;
    void (*end)(void);
    int code;          // its exit code, or minus a signal
    int peer_calls;    // whether rank 0 makes a call, which waits for rank 1
    const char* told;  // what rank 0 is told of rank 1
};
#define ENDING(end, code, peer_calls) \
    { #end, end, code, peer_calls, "rank 1 (pid" }
static const struct ending endings[] = {
    ENDING(returns, 0, 1),
    ENDING(returns, 0, 0),
    ENDING(exits, kCode, 1),
    ENDING(exits_at_once, kCode, 1),
    ENDING(exits_quickly, kCode, 1),
    ENDING(exits_in_a_thread, kCode, 1),
    ENDING(exits_with_a_call_queued, kCode, 0),
    ENDING(exits_while_a_thread_synchronizes, kCode, 0),
    ENDING(exits_while_a_thread_creates, kCode, 1),
    ENDING(its_main_thread_ends, kCode, 1),
    {"aborts", aborts, kCode, 0, "rank 1 failed: it was aborted"},
    {"aborts_and_destroys", aborts_and_destroys, 0, 0, "rank 1 failed: it was aborted"},
    ENDING(destroys, 0, 1),
    ENDING(destroys_in_a_handler, 0, 1),
    ENDING(destroys_when_unloaded, 0, 1),
    ENDING(becomes_another_program, kCode, 1),
    ENDING(is_terminated, -SIGTERM, 1),
    ENDING(crashes, -SIGABRT, 1),
};

static const struct ending* ending;

static void end_or_be_told(struct process* self) {
    const double begin = now();
    start(self);
    if (self->rank == 1) {
        ending->end();
        return;
    }
    if (ending->peer_calls) {
        queue_call();
        FAILS(symm_comm_synchronize(comm, symm_comm_stream(comm)), SYMM_ERROR_RANK, ending->told);
    }
    while (symm_comm_async_error(comm) == SYMM_SUCCESS) {
        sleep_ms(10);
    }
    FAILS(symm_comm_async_error(comm), SYMM_ERROR_RANK, ending->told);
    OK(symm_comm_destroy(comm));
    CHECK(now() - begin < 60);
}

static void expect_code(int status, int code) {
    if ((WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)) != code) {
        fprintf(stderr, "wait status %#x, not exit code %d\n", (unsigned)status, code);
        exit(1);
    }
}

static void run_ending(void) {
    int statuses[2];
    run_processes(2, end_or_be_told, statuses);
    expect_code(statuses[1], ending->code);
    expect_code(statuses[0], 0);
}

// ---- What a child of rank 1 does. Then both ranks go on.

static const char kOfParent[] = "is a child that fork() made of it";
static void uses(void) {
    const symm_stream stream = symm_comm_stream(comm);
    const symm_result refused = SYMM_ERROR_INVALID_ARGUMENT;
    void* other = NULL;
    CHECK(symm_comm_rank(comm) == -1 && symm_comm_ranks(comm) == -1);
    CHECK(symm_comm_device(comm) == -1 && stream == NULL);
    FAILS(symm_all_reduce(comm, window, window, 1, SYMM_FLOAT, SYMM_SUM, stream), refused,
          kOfParent);
    FAILS(symm_reduce_scatter(comm, window, window, 1, SYMM_FLOAT, SYMM_SUM, stream), refused,
          kOfParent);
    FAILS(symm_all_gather(comm, window, window, 1, SYMM_FLOAT, stream), refused, kOfParent);
    FAILS(symm_broadcast(comm, window, window, 1, SYMM_FLOAT, 0, stream), refused, kOfParent);
    FAILS(symm_reduce(comm, window, window, 1, SYMM_FLOAT, SYMM_SUM, 0, stream), refused,
          kOfParent);
    FAILS(symm_all_reduce_rms_norm(comm, &(symm_rms_norm){.size = sizeof(symm_rms_norm)}, stream),
          refused, kOfParent);
    FAILS(symm_window_allocate(comm, 4096, &other), refused, kOfParent);
    FAILS(symm_window_register(comm, window, 4096, &other), refused, kOfParent);
    FAILS(symm_window_release(comm, window), refused, kOfParent);
    FAILS(symm_window_retire(comm, window), refused, kOfParent);
    FAILS(symm_copy(comm, window, &other, sizeof other), refused, kOfParent);
    FAILS(symm_comm_synchronize(comm, stream), refused, kOfParent);
    FAILS(symm_comm_finish(comm), refused, kOfParent);
    FAILS(symm_comm_async_error(comm), refused, kOfParent);
    FAILS(symm_comm_gave_up(comm), refused, kOfParent);
    CHECK(symm_all_reduce_may_wait(comm, window, window, 1, SYMM_FLOAT, SYMM_SUM, stream) == 1);
}
static void aborts_and_destroys_as_a_child(void) {
    OK(symm_comm_abort(comm));
    OK(symm_comm_destroy(comm));
    OK(symm_comm_destroy(comm));
}
static void makes_another(void) {
    symm_comm* other = NULL;
    FAILS(symm_comm_create(&other, 0, 1, "a child's", NULL), SYMM_ERROR_CUDA,
          "is a child that fork() made after process");
    CHECK(other == NULL);
}
static void has_a_child_that_destroys(void) {
    const pid_t child = fork();
    if (child == 0) {
        aborts_and_destroys_as_a_child();
        exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    expect_code(status, 0);
}

static const struct ending children[] = {
    ENDING(returns, 0, 0),
    ENDING(exits, kCode, 0),
    ENDING(exits_at_once, kCode, 0),
    ENDING(exits_quickly, kCode, 0),
    ENDING(exits_in_a_thread, kCode, 0),
    ENDING(its_main_thread_ends, kCode, 0),
    ENDING(destroys_in_a_handler, 0, 0),
    ENDING(destroys_when_unloaded, 0, 0),
    ENDING(becomes_another_program, kCode, 0),
    ENDING(crashes, -SIGABRT, 0),
    ENDING(uses, 0, 0),
    ENDING(aborts_and_destroys_as_a_child, 0, 0),
    ENDING(makes_another, 0, 0),
    ENDING(has_a_child_that_destroys, 0, 0),
    // while another thread of the parent waits for rank 0's call:
    ENDING(returns, 0, 1),
    ENDING(uses, 0, 1),
    ENDING(aborts_and_destroys_as_a_child, 0, 1),
    ENDING(makes_another, 0, 1),
};

static void* synchronize_and_expect_success(void* unused) {
    (void)unused;
    synchronize();
    return NULL;
}

static void fork_child(struct process* self) {
    start(self);
    pthread_t waits;
    if (self->rank == 1 && ending->peer_calls) {
        queue_call();
        CHECK(pthread_create(&waits, NULL, synchronize_and_expect_success, NULL) == 0);
    }
    if (self->rank == 1) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            ending->end();
            exit(0);
        }
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        expect_code(status, ending->code);
    }
    char all[2];
    CHECK(allgather(self, "x", all, 1) == 0);  // the child has ended
    if (!ending->peer_calls || self->rank == 0) {
        queue_call();
        synchronize();
    } else {
        CHECK(pthread_join(waits, NULL) == 0);
    }
    queue_call();
    synchronize();
    OK(symm_comm_destroy(comm));
}

static void run_child(void) {
    expect_all_exit_0(2, fork_child);
}

// Runs each case in a process. Returns how many fail.
static int run(const struct ending* cases, size_t count, void (*body)(void)) {
    pid_t processes[32];
    int failures = 0;
    for (size_t i = 0; i < count; ++i) {
        processes[i] = fork();
        CHECK(processes[i] >= 0);
        if (processes[i] == 0) {
            ending = &cases[i];
            body();
            exit(0);
        }
    }
    for (size_t i = 0; i < count; ++i) {
        int status = 0;
        CHECK(waitpid(processes[i], &status, 0) == processes[i]);
        if (status != 0) {
            fprintf(stderr, "%s (peer_calls: %d) failed\n", cases[i].name, cases[i].peer_calls);
            ++failures;
        }
    }
    return failures;
}

int main(void) {
    return run(endings, sizeof endings / sizeof endings[0], run_ending) +
                       run(children, sizeof children / sizeof children[0], run_child) ==
                   0
               ? 0
               : 1;
}
