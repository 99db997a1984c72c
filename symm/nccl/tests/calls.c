// Calls alone and in groups, on one stream and on several, and what is counted.

#include <pthread.h>
#include <sys/wait.h>

#include "client.h"

// The first call is NCCL's, then all that symm.h knows are ours.
void calls(struct rank* self) {
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
        OK(call(self, nccls[i].count, nccls[i].type, nccls[i].op));
        OK(cuStreamSynchronize(self->stream));
        expect_passed(self, 1);
    }
    ncclResult_t error = ncclInternalError;
    OK(ncclCommGetAsyncError(self->comm, &error));
    CHECK(error == ncclSuccess);
    CHECK(ncclAllReduce((void*)self->in, (void*)self->out, 4, ncclFloat, ncclSum, NULL,
                        self->stream) == ncclInvalidArgument);
    expect_passed(self, 1);
    CHECK(misaligned(self) == ncclInvalidArgument);
    reduce(self, 5, 7);
    expect_passed(self, 0);
}

// Element i of `from` is `sum`'s.
static void expect_sum(CUdeviceptr from, size_t count, float (*sum)(size_t i)) {
    float* values = malloc(count * sizeof(float));
    OK(cuMemcpyDtoH(values, from, count * sizeof(float)));
    for (size_t i = 0; i < count; ++i) {
        CHECK(values[i] == sum(i));
    }
    free(values);
}
static float of_rank_1(size_t i) {
    return element(1, i, 7);
}
static float of_all(size_t i) {
    return element(0, i, 7) + element(1, i, 7) + element(2, i, 7);
}
static float of_part_2(size_t i) {
    return of_all(2 * (size_t)kCount + i);
}
static float gathered(size_t i) {
    return element((int)(i / kCount), i % kCount, 7);
}

// The other collectives, before and after the ranks attach: ours with SYMM_NCCL_COLLECTIVES=all.
void collectives(struct rank* self) {
    const char* const all = getenv("SYMM_NCCL_COLLECTIVES");
    for (int round = 0; round < 3; ++round) {
        const void* const in = (const void*)self->in;
        void* const out = (void*)self->out;
        fill(self->in, self->rank, 3 * (size_t)kCount, 7);
        poison(self->out, 3 * (size_t)kCount);
        meet();
        OK(ncclBroadcast(self->rank == 1 ? in : NULL, out, kCount, ncclFloat, 1, self->comm,
                         self->stream));
        OK(cuStreamSynchronize(self->stream));
        expect_sum(self->out, kCount, of_rank_1);
        poison(self->out, kCount);
        OK(ncclReduce(in, self->rank == 0 ? out : NULL, kCount, ncclFloat, ncclSum, 0, self->comm,
                      self->stream));
        OK(cuStreamSynchronize(self->stream));
        if (self->rank == 0) {
            expect_sum(self->out, kCount, of_all);
        }
        OK(ncclReduceScatter(in, out, kCount, ncclFloat, ncclSum, self->comm, self->stream));
        OK(cuStreamSynchronize(self->stream));
        if (self->rank == 2) {
            expect_sum(self->out, kCount, of_part_2);
        }
        OK(ncclAllGather(in, out, kCount, ncclFloat, self->comm, self->stream));
        OK(cuStreamSynchronize(self->stream));
        expect_sum(self->out, 3 * (size_t)kCount, gathered);
        OK(ncclBcast((void*)self->in, kCount, ncclFloat, 1, self->comm, self->stream));
        OK(cuStreamSynchronize(self->stream));
        expect_sum(self->in, kCount, of_rank_1);
        reduce(self, kCount, 1);
    }
    meet();
    if (self->rank == 0 && is_stand_in()) {
        const long rounds = all != NULL && strcmp(all, "all") == 0 ? 1 : 3;
        CHECK(stand_in_calls("Reduce") == 3 * rounds);
        CHECK(stand_in_calls("Broadcast") == 6 * rounds);
        CHECK(stand_in_calls("ReduceScatter") == 3 * rounds);
    }
    meet();
}

static int is_sum(CUdeviceptr from) {
    float first;
    OK(cuMemcpyDtoH(&first, from, sizeof first));
    return first == element(0, 0, 2) + element(1, 0, 2);
}
void groups(struct rank* self) {
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
    CHECK(!is_sum(self->out));
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
        CHECK(!is_sum(self->out));
        // Nor does a group in which NCCL's part fails.
        OK(ncclGroupStart());
        all_reduce(self, self->in, self->out, part, self->stream);
        CHECK(call(self, part, ncclFloat, 6) == ncclInvalidArgument);
        CHECK(ncclGroupEnd() == ncclInvalidArgument);
        OK(cuStreamSynchronize(self->stream));
        expect_passed(self, 1);
    }
    // Neither a later call nor another communicator hides that a call was refused.
    const struct rank second = split(self, 0, 0, 2);
    all_reduce(&second, self->in, self->out, part, self->stream);
    for (int i = 0; i < 2; ++i) {
        OK(ncclGroupStart());
        OK(misaligned(self));
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
    CHECK(!is_stand_in() || !is_sum(self->out));
    expect_passed(self, 0);
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
        const struct rank second = split(self, 0, 0, self->ranks);
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
void streams(void) {
    int devices = 0;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    run_threads(devices < 3 ? 2 : 3, use_streams);  // NCCL hung with three ranks on one GPU
}

// Two communicators in one stream: in each group the larger call may wait for the other ranks, and
// the order of the two stays the same on all ranks.
void one_stream(struct rank* self) {
    const struct rank second = split(self, 0, 0, 2);
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

// What SYMM_NCCL_STATS=1 counts: calls of ours that were made, and why others were not. A forked
// child's exit says nothing.
static void use_counted(struct rank* self) {
    reduce(self, kCount, 1);
    OK(call(self, 5, ncclDouble, ncclSum));
    CHECK(misaligned(self) == ncclInvalidArgument);
    CHECK(ncclAllReduceConfig((void*)self->in, (void*)self->out, 4, ncclFloat, ncclSum, self->comm,
                              self->stream, NULL) == ncclInvalidUsage);
    OK(cuStreamSynchronize(self->stream));
}
void counted(void) {
    run_threads(2, use_counted);
    int ends[2], status;
    char text;
    OK(pipe(ends));
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        exit(0);
    }
    OK(close(ends[1]));
    CHECK(child > 0 && read(ends[0], &text, 1) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// SYMM_NCCL=0.
void off(struct rank* self) {
    for (int round = 0; round < 3; ++round) {
        reduce(self, kCount, round);
    }
    expect_passed(self, 3);
}

// More ranks than ours take, and a single one.
void nine(void) {
    run_threads(9, off);
    run_threads(1, off);
    CHECK(!is_stand_in() || stand_in_calls("AllGather") == 0);  // none has tried to attach
}

// A misspelled value leaves all calls to NCCL.
void misspelled(struct rank* self) {
    meet();
    if (self->rank == 0) {
        setenv("SYMM_NCCL_STATS", "yes", 1);
    }
    meet();
    off(self);
}

// Buffers may be host memory that the GPU can access.
void host_memory(struct rank* self) {
    void *in, *out;
    reduce(self, kCount, 1);
    OK(cuMemHostAlloc(&in, kCount * 4, 0));
    OK(cuMemHostAlloc(&out, kCount * 4, 0));
    fill((CUdeviceptr)in, self->rank, kCount, 2);
    poison((CUdeviceptr)out, kCount);
    all_reduce(self, (CUdeviceptr)in, (CUdeviceptr)out, kCount, self->stream);
    all_reduce(self, (CUdeviceptr)in, (CUdeviceptr)in, kCount, self->stream);
    OK(cuStreamSynchronize(self->stream));
    expect(self, (CUdeviceptr)out, kCount, 2);
    expect(self, (CUdeviceptr)in, kCount, 2);
    OK(cuMemFreeHost(in));
    OK(cuMemFreeHost(out));
    float* const own = aligned_alloc(4096, 8192);  // as far as the GPU's pages go
    CUdeviceptr registered;
    OK(cuMemHostRegister(own, 8192, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&registered, own, 0));
    fill(registered, self->rank, kCount, 3);
    all_reduce(self, registered, registered, kCount, self->stream);
    OK(cuStreamSynchronize(self->stream));
    expect(self, registered, kCount, 3);
    OK(cuMemHostUnregister(own));
    free(own);
}

// ncclGetLastError has the text of the last refusal, whoever refused.
void last_error(struct rank* self) {
    reduce(self, kCount, 1);
    CHECK(strstr(ncclGetLastError(self->comm), "aligned") == NULL);
    for (int i = 0; i < 2; ++i) {
        meet();
        CHECK(misaligned(self) == ncclInvalidArgument);
        CHECK(strstr(ncclGetLastError(self->comm), "aligned") != NULL);
        meet();
        reduce(self, kCount, 2);  // it is not cleared
        CHECK(strstr(ncclGetLastError(NULL), "aligned") != NULL);
        meet();
        CHECK(i > 0 || ncclAllReduce(NULL, NULL, 4, ncclFloat, ncclSum, NULL, self->stream) ==
                           ncclInvalidArgument);
        CHECK(i > 0 || strstr(ncclGetLastError(NULL), "aligned") == NULL);
        meet();
    }
}

// The last call is larger than those that are ours where NCCL has multicast.
void large(struct rank* self) {
    const size_t million = 1 << 18;  // 1M bytes
    reduce(self, kCount, 1);
    reduce(self, kCount, 2);
    reduce(self, million, 3);
    reduce(self, million + 1, 4);
}

// A communicator is used by one thread at a time, which may be any.
static void* reduce_there(void* rank) {
    struct rank* self = rank;
    OK(cuCtxSetCurrent(self->context));
    OK(ncclGroupStart());
    all_reduce(self, self->in, self->out, kCount, CU_STREAM_PER_THREAD);
    all_reduce(self, self->in, self->out + kMost, kCount, self->side);
    OK(ncclGroupEnd());
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}
void handed_on(struct rank* self) {
    reduce(self, kCount, 1);
    for (int round = 0; round < 5; ++round) {
        pthread_t other;
        fill(self->in, self->rank, kCount, round);
        OK(pthread_create(&other, NULL, reduce_there, self));
        OK(pthread_join(other, NULL));
        expect(self, self->out, kCount, round);
        expect(self, self->out + kMost, kCount, round);
        reduce(self, kCount, round + 1);
    }
    expect_passed(self, 1);
}
