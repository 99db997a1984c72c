// What the cases share: ranks with buffers and checked calls, as threads or as processes.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl_client.h"

// The command line's CASE. Ranks that are threads or processes run the function of that name, with
// a communicator of them all. The others make their own ranks.
// clang-format off
#define CASES(THREADS, PROCESSES, OTHER)                                                          \
    THREADS(2, calls) THREADS(2, groups) THREADS(2, graphs) THREADS(2, one_stream)                \
    THREADS(2, windows) THREADS(4, halves) THREADS(3, others) THREADS(2, late) THREADS(2, off)    \
    THREADS(3, long_work) THREADS(2, aborted) THREADS(2, misspelled) THREADS(2, mixed)            \
    THREADS(2, sends) THREADS(2, host_memory) THREADS(2, last_error) THREADS(3, large)            \
    PROCESSES(3, processes) PROCESSES(3, one_fails) PROCESSES(2, no_memory)                       \
    PROCESSES(2, one_leaves) OTHER(streams) OTHER(one_thread) OTHER(counted) OTHER(nine)          \
    OTHER(one_dies) THREADS(2, handed_on) THREADS(3, collectives)
// clang-format on

enum { kMaxRanks = 9, kCount = 1001, kMost = 1 << 20 };

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)
#define OK(call) CHECK((call) == 0)  // ncclSuccess and CUDA_SUCCESS

double now(void);
int is_stand_in(void);  // only it counts its calls, and takes an operation that nobody has made

// A device, two streams, and buffers of kMost floats. The communicator's `ranks` ranks begin with
// `first` of those that count elements.
struct rank {
    int rank, first, ranks;
    ncclComm_t comm;
    CUcontext context;
    CUstream stream, side;
    CUdeviceptr in, out;
};

int ordinal_of(int rank);  // ranks share GPUs if there are fewer
void make(struct rank* self, size_t most);
void leave(struct rank* self);
struct rank split(const struct rank* self, int color, int first, int ranks);

// Small integers: every order of additions gives the same sum.
float element(int rank, size_t i, int salt);
void fill(CUdeviceptr to, int rank, size_t count, int salt);
void poison(CUdeviceptr to, size_t count);
void expect(const struct rank* self, CUdeviceptr from, size_t count, int salt);
void all_reduce(const struct rank* self, CUdeviceptr in, CUdeviceptr out, size_t count,
                CUstream stream);
ncclResult_t call(const struct rank* self, size_t count, ncclDataType_t type, int op);
ncclResult_t misaligned(const struct rank* self);              // a call that is refused
void reduce(const struct rank* self, size_t count, int salt);  // a call, waited for and checked
CUdeviceptr registered(const struct rank* self, size_t bytes, ncclWindow_t* window);
void deregister(const struct rank* self, CUdeviceptr memory, ncclWindow_t window);
void capture(const struct rank* self);
CUgraphExec captured(const struct rank* self);

// Ranks.
extern ncclUniqueId id;
void meet(void);  // of threads
// Called by all threads: NCCL has got `passed` calls of each since the last time.
void expect_passed(const struct rank* self, long passed);
void run_threads(int ranks, void (*body)(struct rank*));
void run_processes(int ranks, void (*body)(struct rank*), int statuses[]);

#define DECLARE(number, name) void name(struct rank* self);
#define DECLARE_OTHER(name) void name(void);
CASES(DECLARE, DECLARE, DECLARE_OTHER)
