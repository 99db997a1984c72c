// A program in C11 that knows NCCL's API only: ./06_allreduce_drop_in_client CASE, with
// LD_PRELOAD=libsymm_nccl.so and the stand-in for NCCL, which counts the calls that it gets; or
// with NCCL itself in LD_LIBRARY_PATH, on GPUs. Exit status 0 if all is right, else 1 and a line
// that says what is wrong.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nccl_client.h"

enum { kMaxRanks = 9, kCount = 1001, kMost = 1 << 20 };

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)
#define OK(call) CHECK((call) == 0)  // ncclSuccess and CUDA_SUCCESS

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Only the stand-in counts its calls, and takes an operation that nobody has made.
static int is_stand_in(void) {
    return stand_in_calls != NULL;
}

// ---- A rank: a device, two streams, and buffers of kMost floats.

struct rank {
    int rank, ranks;
    ncclComm_t comm;
    CUcontext context;
    CUstream stream, side;
    CUdeviceptr in, out;
};

// Ranks share GPUs if there are fewer.
static int ordinal_of(int rank) {
    int devices = 0;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    return rank % devices;
}

static void use_device(struct rank* self) {
    CUdevice device;
    OK(cuDeviceGet(&device, ordinal_of(self->rank)));
    OK(cuDevicePrimaryCtxRetain(&self->context, device));
    OK(cuCtxSetCurrent(self->context));
}

static void make_with(struct rank* self, size_t most) {
    use_device(self);
    OK(cuStreamCreate(&self->stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&self->side, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&self->in, most * sizeof(float)));
    OK(cuMemAlloc(&self->out, most * sizeof(float)));
}

static void make(struct rank* self) {
    make_with(self, kMost);
}

static void leave(struct rank* self) {
    OK(cuStreamDestroy(self->stream));
    OK(cuStreamDestroy(self->side));
    OK(cuMemFree(self->in));
    OK(cuMemFree(self->out));
}

// An element of a rank's input. Small integers: every order of additions gives the same sum.
static float element(int rank, size_t i, int salt) {
    return (float)((rank + 1) * (int)(i % 97 + 1) + salt);
}

static void copy_in(CUdeviceptr to, float* values, size_t count) {
    OK(cuMemcpyHtoD(to, values, count * sizeof(float)));
    OK(cuStreamSynchronize(NULL));  // the copy may return before the values have arrived
    free(values);
}

static void fill(CUdeviceptr to, int rank, size_t count, int salt) {
    float* values = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
        values[i] = element(rank, i, salt);
    }
    copy_in(to, values, count);
}

static void poison(CUdeviceptr to, size_t count) {
    float* values = malloc(count * sizeof(float));
    memset(values, 0xab, count * sizeof(float));
    copy_in(to, values, count);
}

// Expects the sum of the elements of ranks from `first` on.
static void expect_of(CUdeviceptr from, int first, int ranks, size_t count, int salt) {
    float* values = malloc(count * sizeof(float));
    OK(cuMemcpyDtoH(values, from, count * sizeof(float)));
    for (size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int rank = first; rank < first + ranks; ++rank) {
            expected += element(rank, i, salt);
        }
        if (values[i] != expected) {
            fprintf(stderr, "element %zu is %g, not %g\n", i, (double)values[i], (double)expected);
            exit(1);
        }
    }
    free(values);
}

static void expect(const struct rank* self, CUdeviceptr from, size_t count, int salt) {
    expect_of(from, 0, self->ranks, count, salt);
}

static void all_reduce(const struct rank* self, CUdeviceptr in, CUdeviceptr out, size_t count,
                       CUstream stream) {
    OK(ncclAllReduce((const void*)in, (void*)out, count, ncclFloat, ncclSum, self->comm, stream));
}

// One call, waited for and checked.
static void reduce(const struct rank* self, size_t count, int salt) {
    fill(self->in, self->rank, count, salt);
    poison(self->out, count);
    all_reduce(self, self->in, self->out, count, self->stream);
    OK(cuStreamSynchronize(self->stream));
    expect(self, self->out, count, salt);
}

// ---- Ranks as threads, and how many AllReduces of all of them NCCL has got.

static pthread_barrier_t barrier;
static ncclUniqueId id;

static void meet(void) {
    pthread_barrier_wait(&barrier);
}

// Called by all ranks: NCCL has got `passed` calls of each since the last time.
static void expect_passed(const struct rank* self, long passed) {
    static long before = 0;
    meet();
    if (self->rank == 0 && is_stand_in()) {
        const long after = stand_in_calls("AllReduce");
        if (after - before != passed * self->ranks) {
            fprintf(stderr, "NCCL got %ld calls of %d ranks, not %ld of each\n", after - before,
                    self->ranks, passed);
            exit(1);
        }
        before = after;
    }
    meet();
}

struct thread {
    int rank, ranks;
    void (*body)(struct rank*);
};

static void* run_thread(void* argument) {
    const struct thread* thread = argument;
    struct rank self = {.rank = thread->rank, .ranks = thread->ranks};
    make(&self);
    OK(ncclCommInitRank(&self.comm, self.ranks, id, self.rank));
    thread->body(&self);
    if (self.comm != NULL) {
        OK(ncclCommFinalize(self.comm));
        OK(ncclCommDestroy(self.comm));
    }
    leave(&self);
    return NULL;
}

static void run_threads(int ranks, void (*body)(struct rank*)) {
    pthread_t threads[kMaxRanks];
    struct thread selves[kMaxRanks];
    OK(ncclGetUniqueId(&id));
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)ranks));
    for (int r = 0; r < ranks; ++r) {
        selves[r] = (struct thread){r, ranks, body};
        OK(pthread_create(&threads[r], NULL, run_thread, &selves[r]));
    }
    for (int r = 0; r < ranks; ++r) {
        OK(pthread_join(threads[r], NULL));
    }
    OK(pthread_barrier_destroy(&barrier));
}

// ---- Cases.

// The first call is NCCL's, then all that symm.h knows are ours.
static void use(struct rank* self) {
    reduce(self, kCount, 1);
    expect_passed(self, 1);
    for (int round = 0; round < 5; ++round) {
        reduce(self, kCount + (size_t)round, round);
    }
    reduce(self, kMost, 6);
    expect_passed(self, 0);
    const struct {
        size_t count;
        ncclDataType_t type;
        int op;
    } nccls[] = {{0, ncclFloat, ncclSum}, {64, ncclFloat8e4m3, ncclSum}, {64, ncclFloat, 5}};
    for (int i = 0; i < (is_stand_in() ? 3 : 2); ++i) {
        OK(ncclAllReduce((void*)self->in, (void*)self->out, nccls[i].count, nccls[i].type,
                         (ncclRedOp_t)nccls[i].op, self->comm, self->stream));
        OK(cuStreamSynchronize(self->stream));
        expect_passed(self, 1);
    }
    ncclResult_t error = ncclInternalError;
    OK(ncclCommGetAsyncError(self->comm, &error));
    CHECK(error == ncclSuccess);
    CHECK(ncclAllReduce((void*)self->in, (void*)self->out, 4, ncclFloat, ncclSum, NULL,
                        self->stream) == ncclInvalidArgument);
    expect_passed(self, 1);
    // A misaligned buffer on all ranks.
    CHECK(ncclAllReduce((const void*)(self->in + 1), (void*)self->out, 4, ncclFloat, ncclSum,
                        self->comm, self->stream) == ncclInvalidArgument);
    reduce(self, 5, 7);
    expect_passed(self, 0);
}
static void calls(void) {
    run_threads(2, use);
    if (is_stand_in()) {
        run_threads(4, use);
    }
}

static void use_groups(struct rank* self) {
    const size_t part = 1000;
    fill(self->in, self->rank, 4 * part, 2);
    // NCCL's, although the group has several: the ranks attach after its end.
    OK(ncclGroupStart());
    all_reduce(self, self->in, self->out, part, self->stream);
    all_reduce(self, self->in, self->out, part, self->stream);
    OK(ncclGroupEnd());
    expect_passed(self, 2);
    poison(self->out, 4 * part);
    meet();
    OK(ncclGroupStart());
    all_reduce(self, self->in, self->out, part, self->stream);
    OK(ncclGroupStart());
    all_reduce(self, self->in + part * 4, self->out + part * 4, part, self->side);
    OK(ncclGroupEnd());
    OK(cuStreamSynchronize(self->stream));  // the inner end launches nothing
    float first;
    OK(cuMemcpyDtoH(&first, self->out, sizeof first));
    CHECK(first != element(0, 0, 2) + element(1, 0, 2));
    OK(ncclAllReduce((void*)(self->in + part * 8), (void*)(self->out + part * 8), part, ncclFloat,
                     is_stand_in() ? (ncclRedOp_t)5 : ncclSum, self->comm, self->stream));
    all_reduce(self, self->in + part * 12, self->out + part * 12, part, self->stream);
    OK(ncclGroupEnd());
    OK(cuStreamSynchronize(self->stream));
    OK(cuStreamSynchronize(self->side));
    expect_passed(self, 1);
    for (size_t i = 0; i < 4; ++i) {
        float sums[2];
        OK(cuMemcpyDtoH(sums, self->out + 4 * i * part, sizeof sums));
        CHECK(sums[1] == element(0, i * part + 1, 2) + element(1, i * part + 1, 2));
    }
    if (is_stand_in()) {  // a simulated group launches nothing
        poison(self->out, part);
        OK(ncclGroupStart());
        all_reduce(self, self->in, self->out, part, self->stream);
        OK(ncclGroupSimulateEnd(NULL));
        OK(ncclGroupStart());
        OK(ncclGroupEnd());
        OK(cuStreamSynchronize(self->stream));
        float unchanged;
        OK(cuMemcpyDtoH(&unchanged, self->out, sizeof unchanged));
        CHECK(unchanged != element(0, 0, 2) + element(1, 0, 2));
        // Nor does a group in which NCCL's part fails.
        OK(ncclGroupStart());
        all_reduce(self, self->in, self->out, part, self->stream);
        OK(ncclAllReduce((void*)self->in, (void*)self->out, part, ncclFloat, (ncclRedOp_t)6,
                         self->comm, self->stream));
        CHECK(ncclGroupEnd() == ncclInvalidArgument);
        OK(cuStreamSynchronize(self->stream));
        expect_passed(self, 1);
    }
    // Neither a later call nor another communicator hides that a call was refused.
    struct rank second = *self;
    OK(ncclCommSplit(self->comm, 0, self->rank, &second.comm, NULL));
    all_reduce(&second, self->in, self->out, part, self->stream);
    for (int i = 0; i < 2; ++i) {
        OK(ncclGroupStart());
        OK(ncclAllReduce((void*)(self->in + 1), (void*)self->out, 4, ncclFloat, ncclSum, self->comm,
                         self->stream));
        all_reduce(i == 0 ? self : &second, self->in, self->out, part, self->stream);
        CHECK(ncclGroupEnd() == ncclInvalidArgument);
        OK(cuStreamSynchronize(self->stream));
        expect(self, self->out, part, 2);
    }
    expect_passed(self, 1);
    OK(ncclCommDestroy(second.comm));
    poison(self->out, part);
    // An end without a start is NCCL's error, and the next group works.
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(ncclGroupStart());
    all_reduce(self, self->in, self->out + 4 * part, part, self->stream);
    OK(ncclGroupEnd());
    OK(cuStreamSynchronize(self->stream));
    expect(self, self->out + 4 * part, part, 2);
    OK(cuMemcpyDtoH(&first, self->out, sizeof first));
    CHECK(!is_stand_in() || first != element(0, 0, 2) + element(1, 0, 2));
    expect_passed(self, 0);
}
static void groups(void) {
    run_threads(2, use_groups);
}

static void capture(const struct rank* self) {
    OK(cuStreamBeginCapture(self->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}
static CUgraphExec captured(const struct rank* self) {
    CUgraph graph;
    CUgraphExec executable;
    OK(cuStreamEndCapture(self->stream, &graph));
    OK(cuGraphInstantiate(&executable, graph, 0));
    OK(cuGraphDestroy(graph));
    return executable;
}
static void launch(const struct rank* self, CUgraphExec graph, CUdeviceptr out, int salt) {
    fill(self->in, self->rank, kCount, salt);
    poison(out, kCount);
    OK(cuGraphLaunch(graph, self->stream));
    OK(cuStreamSynchronize(self->stream));
    expect(self, out, kCount, salt);
}
static void use_graphs(struct rank* self) {
    // Captured before the ranks have attached: NCCL's, in each launch.
    capture(self);
    all_reduce(self, self->in, self->out, kCount, self->stream);
    CUgraphExec early = captured(self);
    expect_passed(self, 1);
    launch(self, early, self->out, 1);
    if (is_stand_in()) {  // the ranks attach while the thread captures another stream
        CUgraph nothing;
        OK(cuStreamBeginCapture(self->side, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        all_reduce(self, self->in, self->out, kCount, self->stream);
        OK(cuStreamEndCapture(self->side, &nothing));
        OK(cuGraphDestroy(nothing));
        OK(cuStreamSynchronize(self->stream));
    } else {
        reduce(self, kCount, 2);
    }
    expect_passed(self, 1);
    // Ours: calls on two streams of a capture follow each other, and the capture's first stream
    // follows the other one, although the program has not joined them.
    const CUdeviceptr second = self->out + kCount * 4;
    const CUdeviceptr third = self->out + 2 * kCount * 4;
    CUevent fork;
    CUevent join;
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CUgraphExec graphs[20];
    for (int i = 0; i < 20; ++i) {  // more captures than the library remembers
        capture(self);
        OK(cuEventRecord(fork, self->stream));
        OK(cuStreamWaitEvent(self->side, fork, 0));
        all_reduce(self, self->in, self->out, kCount, self->stream);
        all_reduce(self, self->in, second, kCount, self->side);
        all_reduce(self, self->in, third, kCount, self->stream);
        if (i % 2 == 1) {  // the last call on the other stream, which the program joins
            all_reduce(self, self->in, second, kCount, self->side);
            OK(cuEventRecord(join, self->side));
            OK(cuStreamWaitEvent(self->stream, join, 0));
        }
        graphs[i] = captured(self);
    }
    for (int round = 0; round < 3; ++round) {
        launch(self, graphs[round], third, round);
        expect(self, self->out, kCount, round);
        expect(self, second, kCount, round);
        reduce(self, 77, round);
        launch(self, early, self->out, round);
    }
    // Another capture in between: each has an order of its own.
    CUstream stream;
    CUgraph other;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    capture(self);
    OK(cuEventRecord(fork, self->stream));
    OK(cuStreamWaitEvent(self->side, fork, 0));
    all_reduce(self, self->in, second, kCount, self->side);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    all_reduce(self, self->in, third, kCount, stream);
    OK(cuStreamEndCapture(stream, &other));
    all_reduce(self, self->in, self->out, kCount, self->stream);
    CUgraphExec outer = captured(self);  // which fails if a stream has not been joined
    launch(self, outer, self->out, 4);
    expect(self, second, kCount, 4);
    OK(cuGraphExecDestroy(outer));
    OK(cuGraphDestroy(other));
    OK(cuStreamDestroy(stream));
    // A window registered, and another one released, while the thread captures.
    if (is_stand_in()) {
        void* memory = NULL;
        ncclWindow_t window;
        OK(ncclMemAlloc(&memory, 1 << 20));
        OK(ncclCommWindowRegister(self->comm, memory, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC));
        OK(ncclCommWindowDeregister(self->comm, window));
        capture(self);
        OK(ncclCommWindowRegister(self->comm, memory, 1 << 20, &window, NCCL_WIN_COLL_SYMMETRIC));
        all_reduce(self, self->in, (CUdeviceptr)memory, kCount, self->stream);
        CUgraphExec graph = captured(self);
        launch(self, graph, (CUdeviceptr)memory, 5);
        OK(cuGraphExecDestroy(graph));
    }
    expect_passed(self, 0);
    for (int i = 0; i < 20; ++i) {
        OK(cuGraphExecDestroy(graphs[i]));
    }
    OK(cuGraphExecDestroy(early));
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
}
static void graphs(void) {
    run_threads(2, use_graphs);
}

// Calls of one communicator on several streams, without waits in between.
static void use_streams(struct rank* self) {
    enum { kCalls = 24 };
    reduce(self, kCount, 1);
    fill(self->in, self->rank, kCount, 3);
    poison(self->out, (size_t)kCalls * kCount);
    for (int i = 0; i < kCalls; ++i) {
        const CUstream streams[] = {self->stream, self->side, CU_STREAM_PER_THREAD};
        all_reduce(self, self->in, self->out + (CUdeviceptr)(i * kCount * 4), kCount,
                   streams[i * 7 % 3]);
    }
    OK(cuStreamSynchronize(self->stream));
    OK(cuStreamSynchronize(self->side));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    for (int i = 0; i < kCalls; ++i) {
        expect(self, self->out + (CUdeviceptr)(i * kCount * 4), kCount, 3);
    }
    expect_passed(self, 1);
    if (is_stand_in()) {  // the default stream is that of the communicator's device
        struct rank second = *self;
        OK(ncclCommSplit(self->comm, 0, self->rank, &second.comm, NULL));
        poison(self->out, 2 * kCount);
        OK(cuCtxSetCurrent(NULL));
        all_reduce(&second, self->in, self->out, kCount, NULL);
        all_reduce(&second, self->in, self->out + kCount * 4, kCount, NULL);
        CUcontext context = self->context;
        OK(cuCtxGetCurrent(&context));
        CHECK(context == NULL);
        OK(cuCtxSetCurrent(self->context));
        OK(cuStreamSynchronize(NULL));
        expect(self, self->out, kCount, 3);
        expect(self, self->out + kCount * 4, kCount, 3);
        expect_passed(self, 1);
        OK(ncclCommDestroy(second.comm));
    }
}
static void streams(void) {
    int devices = 0;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    run_threads(devices < 3 ? 2 : 3, use_streams);  // NCCL hung with three ranks on one GPU
}

// Two communicators in one stream: in each group the larger call may wait for the other ranks, and
// the order of the two stays the same on all ranks.
static void use_one_stream(struct rank* self) {
    struct rank second = *self;
    OK(ncclCommSplit(self->comm, 0, self->rank, &second.comm, NULL));
    reduce(self, kCount, 0);
    reduce(&second, kCount, 0);
    fill(self->in, self->rank, 2 * kCount, 1);
    for (size_t count = kCount; count < kCount + 60; ++count) {
        OK(ncclGroupStart());
        all_reduce(self, self->in, self->out, count, self->stream);
        all_reduce(&second, self->in, self->out + kMost, count, self->stream);
        OK(ncclGroupEnd());
    }
    OK(cuStreamSynchronize(self->stream));
    expect(self, self->out, kCount + 59, 1);
    expect(self, self->out + kMost, kCount + 59, 1);
    OK(ncclCommDestroy(second.comm));
}
static void one_stream(void) {
    run_threads(2, use_one_stream);
}

// Two halves of four ranks, each with a communicator, beside that of all.
static void use_halves(struct rank* self) {
    struct rank half = *self;
    OK(ncclCommSplit(self->comm, self->rank / 2, self->rank, &half.comm, NULL));
    const int first = self->rank / 2 * 2;
    for (int round = 0; round < 4; ++round) {
        reduce(self, kCount, round);
        fill(self->in, self->rank, kCount, round);
        poison(self->out, kCount);
        all_reduce(&half, self->in, self->out, kCount, self->stream);
        OK(cuStreamSynchronize(self->stream));
        expect_of(self->out, first, 2, kCount, round);
    }
    expect_passed(self, 2);  // the first of each communicator
    OK(ncclCommDestroy(half.comm));
    // A communicator at the address of the old one attaches anew.
    OK(ncclCommSplit(self->comm, self->rank / 2, -self->rank, &half.comm, NULL));
    all_reduce(&half, self->in, self->out, kCount, self->stream);
    all_reduce(&half, self->in, self->out, kCount, self->stream);
    OK(cuStreamSynchronize(self->stream));
    expect_passed(self, 1);
    OK(ncclCommDestroy(half.comm));
}
static void halves(void) {
    run_threads(4, use_halves);
}

static CUdeviceptr registered(const struct rank* self, size_t bytes, ncclWindow_t* window) {
    void* memory = NULL;
    OK(ncclMemAlloc(&memory, bytes));
    OK(ncclCommWindowRegister(self->comm, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
    return (CUdeviceptr)memory;
}
static void use_windows(struct rank* self) {
    const size_t bytes = (size_t)8 << 20;
    ncclWindow_t in_window, out_window;
    struct rank inside = *self;
    inside.in = registered(self, bytes, &in_window);  // before the ranks attach
    reduce(self, kCount, 1);
    inside.out = registered(self, bytes, &out_window);
    expect_passed(self, 1);
    reduce(&inside, bytes / 4, 2);
    for (int round = 0; round < 3; ++round) {
        // Freed, and at once made again, often at the same address.
        OK(ncclCommWindowDeregister(self->comm, in_window));
        OK(ncclMemFree((void*)inside.in));
        inside.in = registered(self, bytes, &in_window);
        reduce(&inside, bytes / 4, 3 + round);
    }
    OK(ncclCommWindowDeregister(self->comm, in_window));
    reduce(&inside, kCount, 8);  // staged: one of the two is a window no more
    expect_passed(self, 0);
    OK(ncclMemFree((void*)inside.in));
    if (is_stand_in()) {  // neither a window of another kind nor one that NCCL refuses is used
        for (int flags = 0; flags < 2; ++flags) {
            void* memory = NULL;
            ncclWindow_t window;
            OK(ncclMemAlloc(&memory, bytes));
            OK(ncclCommWindowRegister(self->comm, memory, bytes, &window, flags));
            CHECK((window == NULL) == (flags == NCCL_WIN_COLL_SYMMETRIC));
            inside.in = (CUdeviceptr)memory;
            reduce(&inside, bytes / 4, 9 + flags);
        }
        expect_passed(self, 0);
    }
    // The other windows are left to ncclCommDestroy, which calls ncclCommWindowDeregister itself.
}
static void windows(void) {
    run_threads(2, use_windows);
    // Four of one of them, two others, of two ranks; not those of NCCL's own library.
    CHECK(!is_stand_in() || stand_in_calls("CommWindowDeregister") == (4 + 2) * 2);
}

// A group of a call of each rank, made by this thread.
static void reduce_together(const struct rank* ranks, int count_of_ranks, size_t count, int salt) {
    for (int r = 0; r < count_of_ranks; ++r) {
        fill(ranks[r].in, r, count, salt);
        if (ranks[r].out != ranks[r].in) {
            poison(ranks[r].out, count);
        }
    }
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        all_reduce(&ranks[r], ranks[r].in, ranks[r].out, count, ranks[r].stream);
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuStreamSynchronize(ranks[r].stream));
        expect(&ranks[r], ranks[r].out, count, salt);
    }
}

// Windows of 10M, registered in a group, deregistered one by one.
static void reduce_in_windows(const struct rank* ranks, int count_of_ranks, size_t count) {
    struct rank inside[kMaxRanks];
    ncclWindow_t handles[kMaxRanks];
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuCtxSetCurrent(ranks[r].context));
        inside[r] = ranks[r];
        inside[r].in = inside[r].out = registered(&ranks[r], (size_t)10 << 20, &handles[r]);
    }
    OK(ncclGroupEnd());
    reduce_together(inside, count_of_ranks, count, 9);
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(ncclCommWindowDeregister(ranks[r].comm, handles[r]));
        OK(ncclMemFree((void*)inside[r].in));
    }
}

// One thread with a communicator for each of its GPUs, as nccl-tests with -g 3.
static void one_thread_of(int count_of_ranks) {
    ncclComm_t comms[kMaxRanks];
    struct rank ranks[kMaxRanks];
    const int before = is_stand_in() ? stand_in_calls("AllReduce") : 0;
    for (int r = 0; r < count_of_ranks; ++r) {
        ranks[r] = (struct rank){.rank = r, .ranks = count_of_ranks};
        make_with(&ranks[r], 5 * kMost);
    }
    if (is_stand_in()) {
        int devices[kMaxRanks];
        for (int r = 0; r < count_of_ranks; ++r) {
            devices[r] = ordinal_of(r);
        }
        OK(ncclCommInitAll(comms, count_of_ranks, devices));
    } else {  // which takes each GPU once only
        OK(ncclGetUniqueId(&id));
        OK(ncclGroupStart());
        for (int r = 0; r < count_of_ranks; ++r) {
            OK(cuCtxSetCurrent(ranks[r].context));
            OK(ncclCommInitRank(&comms[r], count_of_ranks, id, r));
        }
        OK(ncclGroupEnd());
    }
    for (int r = 0; r < count_of_ranks; ++r) {
        ranks[r].comm = comms[r];
    }
    // The largest takes an algorithm for which the ranks first make memory.
    const size_t sizes[] = {10, 20, kCount, 200000, 5 * kMost, kMost, 20};
    for (int i = 0; i < 7; ++i) {
        reduce_together(ranks, count_of_ranks, sizes[i], i);
    }
    CHECK(!is_stand_in() || stand_in_calls("AllReduce") == before + count_of_ranks);
    reduce_in_windows(ranks, count_of_ranks, kMost);
    // In which the ranks give back the windows. A GPU of one rank has a default stream of its own.
    const int share = ordinal_of(count_of_ranks - 1) != count_of_ranks - 1;
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        all_reduce(&ranks[r], ranks[r].in, ranks[r].out, 10, share ? ranks[r].stream : NULL);
    }
    OK(ncclGroupEnd());
    CHECK(!is_stand_in() || stand_in_calls("AllReduce") == before + count_of_ranks);
    if (is_stand_in()) {  // after a suspension the ranks make that memory anew
        for (int r = 0; r < count_of_ranks; ++r) {
            OK(ncclCommSuspend(comms[r], 1));
            OK(ncclCommResume(comms[r]));
        }
        reduce_together(ranks, count_of_ranks, 10, 1);
        // As many bytes in windows need none.
        reduce_in_windows(ranks, count_of_ranks, 9 * kMost / 4);
        reduce_together(ranks, count_of_ranks, 10, 2);  // gives back the windows
        reduce_together(ranks, count_of_ranks, 9 * kMost / 4, 3);
        reduce_together(ranks, count_of_ranks, 5 * kMost, 4);
        CHECK(stand_in_calls("AllReduce") == before + 2 * count_of_ranks);
    }
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(ncclCommDestroy(comms[r]));
        leave(&ranks[r]);
    }
}
static void one_thread(void) {
    one_thread_of(3);
    one_thread_of(2);
}

// The rest of the functions that the library replaces.
static void use_others(struct rank* self) {
    reduce(self, kCount, 1);
    expect_passed(self, 1);
    // Given back while the communicator is suspended, and attached again after that.
    OK(ncclCommSuspend(self->comm, 1));
    meet();
    OK(ncclCommResume(self->comm));
    reduce(self, kCount, 2);
    expect_passed(self, 1);
    reduce(self, kCount, 3);
    expect_passed(self, 0);
    // NCCL 2.28.9 lacks this one.
    CHECK(ncclAllReduceConfig((void*)self->in, (void*)self->out, 4, ncclFloat, ncclSum, self->comm,
                              self->stream, NULL) == ncclInvalidUsage);
    struct rank other = *self;
    OK(ncclCommSplit(self->comm, 0, self->rank, &other.comm, NULL));
    reduce(&other, kCount, 4);
    reduce(&other, kCount, 5);
    expect_passed(self, 1);
    const double begin = now();
    if (self->rank != 0) {  // which ends although rank 0 does not come
        all_reduce(&other, self->in, self->out, kCount, self->stream);
    }
    OK(ncclCommRevoke(other.comm, 0));
    OK(cuStreamSynchronize(self->stream));
    CHECK(now() - begin < 20);
    const ncclResult_t revoked = ncclAllReduce((void*)self->in, (void*)self->out, kCount, ncclFloat,
                                               ncclSum, other.comm, self->stream);
    CHECK(revoked == ncclSuccess);  // the stand-in's answer
    expect_passed(self, 1);
    OK(ncclCommAbort(other.comm));
    OK(ncclCommSplit(self->comm, 0, self->rank, &other.comm, NULL));
    reduce(&other, kCount, 6);  // often at the same address
    reduce(&other, kCount, 7);
    expect_passed(self, 1);
    OK(ncclCommDestroy(other.comm));
    // Without rank 0, beside which the old communicator lives on.
    int excluded[] = {0};
    struct rank shrunk = *self;
    if (self->rank != 0) {
        OK(ncclCommShrink(self->comm, excluded, 1, &shrunk.comm, NULL, 0));
        OK(ncclCommDestroy(shrunk.comm));
    }
    reduce(self, kCount, 8);
    expect_passed(self, 0);
    // Rank 0 does not come, and the others wait for it in a call of ours.
    if (self->rank == 0) {
        meet();
        meet();
        return;
    }
    all_reduce(self, self->in, self->out, kCount, self->stream);
    const double start = now();
    meet();
    OK(ncclCommShrink(self->comm, excluded, 1, &shrunk.comm, NULL, NCCL_SHRINK_ABORT));
    OK(cuStreamSynchronize(self->stream));
    CHECK(now() - start < 20);  // not by SYMM_TIMEOUT
    meet();
    for (int i = 0; i < 2; ++i) {
        fill(self->in, self->rank, kCount, i);
        all_reduce(&shrunk, self->in, self->out, kCount, self->stream);
        OK(cuStreamSynchronize(self->stream));
        expect_of(self->out, 1, 2, kCount, i);
    }
    OK(ncclCommDestroy(shrunk.comm));
}
static void others(void) {
    run_threads(3, use_others);
    CHECK(stand_in_calls("AllReduce") == 3 * 5 + 2);
}

// ncclCommAbort from another thread ends a call that waits for a rank which does not come.
static void* abort_comm(void* comm) {
    OK(ncclCommAbort(comm));
    return NULL;
}
// The same for a first call, while the rank attaches: in `function` of NCCL.
static long calls_before;
static const char* function;
static void* abort_in_function(void* comm) {
    while (stand_in_calls(function) == calls_before) {
        usleep(1000);
    }
    return abort_comm(comm);
}
static void abort_first_call(struct rank* self, int waiting, int delay) {
    struct rank fresh = *self;
    OK(ncclCommSplit(self->comm, 0, self->rank, &fresh.comm, NULL));
    meet();
    if (self->rank == waiting) {
        pthread_t other;
        const double start = now();
        calls_before = stand_in_calls(function);
        stand_in_delay(delay);
        OK(pthread_create(&other, NULL, abort_in_function, fresh.comm));
        CHECK(ncclAllReduce((void*)self->in, (void*)self->out, kCount, ncclFloat, ncclSum,
                            fresh.comm, self->stream) != ncclSuccess);
        OK(pthread_join(other, NULL));
        CHECK(now() - start < 20);
        OK(cuStreamSynchronize(self->stream));
        stand_in_delay(0);
    }
    meet();
    if (self->rank != waiting) {
        OK(ncclCommAbort(fresh.comm));
    }
    meet();
}
static void use_aborted(struct rank* self) {
    if (is_stand_in()) {
        function = "AllGather";
        abort_first_call(self, 0, 0);
        abort_first_call(self, 1, 0);  // this rank waits inside of NCCL
        function = "CommGetAsyncError";
        abort_first_call(self, 0, 2);  // NCCL's part stays in progress
    }
    reduce(self, kCount, 1);
    meet();
    if (self->rank == 0) {
        pthread_t other;
        all_reduce(self, self->in, self->out, kCount, self->stream);
        CHECK(cuStreamQuery(self->stream) == CUDA_ERROR_NOT_READY);
        const double start = now();
        OK(pthread_create(&other, NULL, abort_comm, self->comm));
        OK(cuStreamSynchronize(self->stream));
        OK(pthread_join(other, NULL));
        CHECK(now() - start < 20);  // not by SYMM_TIMEOUT
        meet();
    } else {
        meet();  // its communicator lives until the other's call has ended
        OK(ncclCommAbort(self->comm));
    }
    self->comm = NULL;
}
static void aborted(void) {
    run_threads(2, use_aborted);
}

// NCCL's communicators do not block: their part is in progress when a call returns.
static void use_late(struct rank* self) {
    struct rank second = *self;
    OK(ncclCommSplit(self->comm, 0, self->rank, &second.comm, NULL));
    meet();
    stand_in_delay(1);
    meet();
    reduce(self, kCount, 1);
    const CUdeviceptr memory = registered(self, kCount * 4, &(ncclWindow_t){NULL});
    reduce(self, kCount, 2);
    expect_passed(self, 1);
    OK(ncclGroupStart());
    all_reduce(&second, self->in, self->out, kCount, self->stream);
    CHECK(ncclGroupEnd() == ncclInProgress);
    reduce(&second, kCount, 3);
    expect_passed(self, 1);
    stand_in_delay(0);
    OK(ncclCommDestroy(second.comm));
    OK(ncclCommFinalize(self->comm));
    OK(ncclMemFree((void*)memory));
}
static void late(void) {
    run_threads(2, use_late);
}

// What SYMM_NCCL_STATS=1 counts: calls of ours that were made, and why others were not. A forked
// child's exit says nothing.
static void use_counted(struct rank* self) {
    reduce(self, kCount, 1);
    OK(ncclAllReduce((void*)self->in, (void*)self->out, 5, ncclDouble, ncclSum, self->comm,
                     self->stream));
    CHECK(ncclAllReduce((void*)(self->in + 1), (void*)self->out, 5, ncclDouble, ncclSum, self->comm,
                        self->stream) == ncclInvalidArgument);
    CHECK(ncclAllReduceConfig((void*)self->in, (void*)self->out, 4, ncclFloat, ncclSum, self->comm,
                              self->stream, NULL) == ncclInvalidUsage);
    OK(cuStreamSynchronize(self->stream));
}
static void counted(void) {
    run_threads(2, use_counted);
    int ends[2];
    char text;
    OK(pipe(ends));
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        exit(0);
    }
    OK(close(ends[1]));
    CHECK(child > 0 && read(ends[0], &text, 1) == 0 && waitpid(child, NULL, 0) == child);
    OK(close(ends[0]));
}

// SYMM_NCCL=0.
static void use_off(struct rank* self) {
    for (int round = 0; round < 3; ++round) {
        reduce(self, kCount, round);
    }
    expect_passed(self, 3);
}
static void off(void) {
    run_threads(2, use_off);
}

// More ranks than ours take, and a single one.
static void nine(void) {
    run_threads(9, use_off);
    run_threads(1, use_off);
    CHECK(!is_stand_in() || stand_in_calls("AllGather") == 0);  // none has tried to attach
}

// ---- Ranks as processes. Rank 0 has made the unique id before they part.

static void run_processes(int ranks, void (*body)(struct rank*), int statuses[]) {
    pid_t children[kMaxRanks];
    snprintf(id.internal, sizeof id.internal, "client %d", (int)getpid());
    for (int r = 0; r < ranks; ++r) {
        children[r] = fork();
        CHECK(children[r] >= 0);
        if (children[r] == 0) {
            alarm(100);  // no rank outlives a test that was killed
            struct rank self = {.rank = r, .ranks = ranks};
            make(&self);
            OK(ncclCommInitRank(&self.comm, ranks, id, r));
            body(&self);
            exit(0);
        }
    }
    for (int r = 0; r < ranks; ++r) {
        CHECK(waitpid(children[r], &statuses[r], 0) == children[r]);
    }
}

static void expect_all_exit_0(int ranks, void (*body)(struct rank*)) {
    int statuses[kMaxRanks];
    run_processes(ranks, body, statuses);
    for (int r = 0; r < ranks; ++r) {
        CHECK(WIFEXITED(statuses[r]) && WEXITSTATUS(statuses[r]) == 0);
    }
}

static void use_in_process(struct rank* self) {
    for (int round = 0; round < 5; ++round) {
        reduce(self, kCount, round);
    }
    reduce(self, kMost, 5);
    CHECK(stand_in_calls("AllReduce") == 1);
    if (self->rank == 0) {
        exit(0);  // without an end of its communicator
    }
    OK(ncclCommDestroy(self->comm));
    leave(self);
}
static void processes(void) {
    expect_all_exit_0(3, use_in_process);
}

// One rank cannot attach: none does. Its environment is refused before it meets the others.
static void use_where_one_fails(struct rank* self) {
    if (self->rank == 1) {
        setenv("SYMM_BLOCKS", "many", 1);
    }
    for (int round = 0; round < 3; ++round) {
        reduce(self, kCount, round);
    }
    const long gathered = stand_in_calls("AllGather");
    OK(ncclCommSuspend(self->comm, 1));
    OK(ncclCommResume(self->comm));
    reduce(self, kCount, 3);
    CHECK(stand_in_calls("AllReduce") == 4 && stand_in_calls("AllGather") == gathered);
    OK(ncclCommDestroy(self->comm));
}
static void one_fails(void) {
    expect_all_exit_0(3, use_where_one_fails);
}

// Without memory to meet in, the rank that has none says so: the others may wait for it.
static void use_without_memory(struct rank* self) {
    CUdeviceptr taken;
    for (size_t bytes = (size_t)1 << 30; bytes != 0; bytes /= 2) {
        while (cuMemAlloc(&taken, bytes) == CUDA_SUCCESS) {
        }
    }
    CHECK(ncclAllReduce((void*)self->in, (void*)self->out, kCount, ncclFloat, ncclSum, self->comm,
                        self->stream) == ncclInternalError);
    OK(ncclCommAbort(self->comm));
}
static void no_memory(void) {
    expect_all_exit_0(2, use_without_memory);
}

// A misspelled value leaves all calls to NCCL.
static void use_misspelled(struct rank* self) {
    setenv("SYMM_NCCL_STATS", "yes", 1);
    use_off(self);
}
static void misspelled(void) {
    run_threads(2, use_misspelled);
}

// A rank that dies: the others' call ends, and says so.
static void use_where_one_dies(struct rank* self) {
    reduce(self, kCount, 1);
    reduce(self, kCount, 2);
    if (self->rank == 1) {
        raise(SIGKILL);
    }
    all_reduce(self, self->in, self->out, kCount, self->stream);
    OK(cuStreamSynchronize(self->stream));
    ncclResult_t error = ncclSuccess;
    OK(ncclCommGetAsyncError(self->comm, &error));
    CHECK(error == ncclRemoteError);
    CHECK(ncclAllReduce((void*)self->in, (void*)self->out, kCount, ncclFloat, ncclSum, self->comm,
                        self->stream) != ncclSuccess);
    CHECK(self->rank == 0 ? ncclCommAbort(self->comm) == ncclSuccess
                          : ncclCommDestroy(self->comm) == ncclRemoteError);
}
static void one_dies(void) {
    int statuses[kMaxRanks];
    run_processes(3, use_where_one_dies, statuses);
    CHECK(WIFSIGNALED(statuses[1]));
    CHECK(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0);
    CHECK(WIFEXITED(statuses[2]) && WEXITSTATUS(statuses[2]) == 0);
}

// A rank that has made its last call may go, which ncclCommFinalize waits for: the others'
// communicator has not failed, and asking whether it has leaves a capture alone.
static void use_and_leave(struct rank* self) {
    reduce(self, kCount, 1);
    if (self->rank == 0) {
        usleep(300000);
    }
    all_reduce(self, self->in, self->out, kCount, self->stream);
    if (self->rank == 0) {
        const double start = now();
        capture(self);
        while (now() - start < 5) {
            ncclResult_t error = ncclInternalError;
            OK(ncclCommGetAsyncError(self->comm, &error));
            CHECK(error == ncclSuccess);
            usleep(20000);
        }
        OK(cuGraphExecDestroy(captured(self)));
    }
    OK(ncclCommFinalize(self->comm));
    OK(cuStreamQuery(self->stream));
    OK(ncclCommDestroy(self->comm));
}
static void one_leaves(void) {
    expect_all_exit_0(2, use_and_leave);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {{"calls", calls},
                 {"groups", groups},
                 {"graphs", graphs},
                 {"streams", streams},
                 {"one_stream", one_stream},
                 {"halves", halves},
                 {"windows", windows},
                 {"one_thread", one_thread},
                 {"others", others},
                 {"aborted", aborted},
                 {"late", late},
                 {"counted", counted},
                 {"off", off},
                 {"nine", nine},
                 {"processes", processes},
                 {"one_fails", one_fails},
                 {"misspelled", misspelled},
                 {"no_memory", no_memory},
                 {"one_dies", one_dies},
                 {"one_leaves", one_leaves}};
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; ++i) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: 06_allreduce_drop_in_client CASE\n");
    return 2;
}
