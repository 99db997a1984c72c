// A program in C11 that knows NCCL's API only: ./06_allreduce_drop_in_client CASE, with
// LD_PRELOAD=libsymm_nccl.so and the stand-in for NCCL, which counts the calls that it gets; or
// with NCCL itself in LD_LIBRARY_PATH, on GPUs. Exit status 0 if all is right, else 1 and a line
// that says what is wrong.

#include "client.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int is_stand_in(void) {
    return stand_in_calls != NULL;
}

int ordinal_of(int rank) {
    int devices = 0;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    return rank % devices;
}

void make(struct rank* self, size_t most) {
    CUdevice device;
    OK(cuDeviceGet(&device, ordinal_of(self->rank)));
    OK(cuDevicePrimaryCtxRetain(&self->context, device));
    OK(cuCtxSetCurrent(self->context));
    OK(cuStreamCreate(&self->stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&self->side, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&self->in, most * sizeof(float)));
    OK(cuMemAlloc(&self->out, most * sizeof(float)));
}

void leave(struct rank* self) {
    OK(cuStreamDestroy(self->stream));
    OK(cuStreamDestroy(self->side));
    OK(cuMemFree(self->in));
    OK(cuMemFree(self->out));
}

struct rank split(const struct rank* self, int color, int first, int ranks) {
    struct rank part = *self;
    part.first = first;
    part.ranks = ranks;
    OK(ncclCommSplit(self->comm, color, self->rank, &part.comm, NULL));
    return part;
}

float element(int rank, size_t i, int salt) {
    return (float)((rank + 1) * (int)(i % 97 + 1) + salt);
}

static void copy_in(CUdeviceptr to, float* values, size_t count) {
    OK(cuMemcpyHtoD(to, values, count * sizeof(float)));
    OK(cuStreamSynchronize(NULL));  // the copy may return before the values have arrived
    free(values);
}

void fill(CUdeviceptr to, int rank, size_t count, int salt) {
    float* values = malloc(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
        values[i] = element(rank, i, salt);
    }
    copy_in(to, values, count);
}

void poison(CUdeviceptr to, size_t count) {
    float* values = malloc(count * sizeof(float));
    memset(values, 0xab, count * sizeof(float));
    copy_in(to, values, count);
}

void expect(const struct rank* self, CUdeviceptr from, size_t count, int salt) {
    float* values = malloc(count * sizeof(float));
    OK(cuMemcpyDtoH(values, from, count * sizeof(float)));
    for (size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int rank = self->first; rank < self->first + self->ranks; ++rank) {
            expected += element(rank, i, salt);
        }
        if (values[i] != expected) {
            fprintf(stderr, "element %zu is %g, not %g\n", i, (double)values[i], (double)expected);
            exit(1);
        }
    }
    free(values);
}

void all_reduce(const struct rank* self, CUdeviceptr in, CUdeviceptr out, size_t count,
                CUstream stream) {
    OK(ncclAllReduce((const void*)in, (void*)out, count, ncclFloat, ncclSum, self->comm, stream));
}

ncclResult_t call(const struct rank* self, size_t count, ncclDataType_t type, int op) {
    return ncclAllReduce((const void*)self->in, (void*)self->out, count, type, (ncclRedOp_t)op,
                         self->comm, self->stream);
}

ncclResult_t misaligned(const struct rank* self) {
    return ncclAllReduce((const void*)(self->in + 1), (void*)self->out, 4, ncclFloat, ncclSum,
                         self->comm, self->stream);
}

void reduce(const struct rank* self, size_t count, int salt) {
    fill(self->in, self->rank, count, salt);
    poison(self->out, count);
    all_reduce(self, self->in, self->out, count, self->stream);
    OK(cuStreamSynchronize(self->stream));
    expect(self, self->out, count, salt);
}

CUdeviceptr registered(const struct rank* self, size_t bytes, ncclWindow_t* window) {
    void* memory = NULL;
    OK(ncclMemAlloc(&memory, bytes));
    OK(ncclCommWindowRegister(self->comm, memory, bytes, window, NCCL_WIN_COLL_SYMMETRIC));
    return (CUdeviceptr)memory;
}

void deregister(const struct rank* self, CUdeviceptr memory, ncclWindow_t window) {
    OK(ncclCommWindowDeregister(self->comm, window));
    OK(ncclMemFree((void*)memory));
}

void capture(const struct rank* self) {
    OK(cuStreamBeginCapture(self->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

CUgraphExec captured(const struct rank* self) {
    CUgraph graph;
    CUgraphExec executable;
    OK(cuStreamEndCapture(self->stream, &graph));
    OK(cuGraphInstantiate(&executable, graph, 0));
    OK(cuGraphDestroy(graph));
    return executable;
}

static pthread_barrier_t barrier;
ncclUniqueId id;

void meet(void) {
    pthread_barrier_wait(&barrier);
}

void expect_passed(const struct rank* self, long passed) {
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
    make(&self, kMost);
    OK(ncclCommInitRank(&self.comm, self.ranks, id, self.rank));
    thread->body(&self);
    OK(ncclCommFinalize(self.comm));
    OK(ncclCommDestroy(self.comm));
    leave(&self);
    return NULL;
}

void run_threads(int ranks, void (*body)(struct rank*)) {
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

// Rank 0 has made the unique id before they part.
void run_processes(int ranks, void (*body)(struct rank*), int statuses[]) {
    pid_t children[kMaxRanks];
    snprintf(id.internal, sizeof id.internal, "client %d", (int)getpid());
    for (int r = 0; r < ranks; ++r) {
        children[r] = fork();
        CHECK(children[r] >= 0);
        if (children[r] == 0) {
            alarm(100);  // no rank outlives a test that was killed
            struct rank self = {.rank = r, .ranks = ranks};
            make(&self, kMost);
            OK(ncclCommInitRank(&self.comm, ranks, id, r));
            body(&self);
            exit(0);
        }
    }
    for (int r = 0; r < ranks; ++r) {
        CHECK(waitpid(children[r], &statuses[r], 0) == children[r]);
    }
}

static void run_processes_well(int ranks, void (*body)(struct rank*)) {
    int statuses[kMaxRanks];
    run_processes(ranks, body, statuses);
    for (int r = 0; r < ranks; ++r) {
        CHECK(WIFEXITED(statuses[r]) && WEXITSTATUS(statuses[r]) == 0);
    }
}

int main(int argc, char** argv) {
    const char* asked = argc == 2 ? argv[1] : "";
#define RUN(name, run)               \
    if (strcmp(asked, #name) == 0) { \
        run;                         \
        return 0;                    \
    }
#define RUN_THREADS(ranks, body) RUN(body, run_threads(ranks, body))
#define RUN_PROCESSES(ranks, body) RUN(body, run_processes_well(ranks, body))
#define RUN_OTHER(body) RUN(body, body())
    CASES(RUN_THREADS, RUN_PROCESSES, RUN_OTHER)
    fprintf(stderr, "usage: 06_allreduce_drop_in_client CASE\n");
    return 2;
}
