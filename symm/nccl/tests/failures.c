// Ranks that fail or go, and ncclCommAbort.

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "client.h"

// ncclCommAbort from another thread ends a call that waits for a rank which does not come.
static void* abort_comm(void* comm) {
    OK(ncclCommAbort(comm));
    return NULL;
}
static void* abort_soon(void* comm) {
    usleep(300000);
    return abort_comm(comm);
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
    const struct rank fresh = split(self, 0, 0, 2);
    meet();
    if (self->rank == waiting) {
        pthread_t other;
        const double start = now();
        calls_before = stand_in_calls(function);
        stand_in_delay(delay);
        OK(pthread_create(&other, NULL, abort_in_function, fresh.comm));
        CHECK(call(&fresh, kCount, ncclFloat, ncclSum) != ncclSuccess);
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
void aborted(struct rank* self) {
    if (is_stand_in()) {
        function = "AllGather";
        abort_first_call(self, 0, 0);
        abort_first_call(self, 1, 0);  // this rank waits inside of NCCL
        function = "CommGetAsyncError";
        abort_first_call(self, 0, 2);  // NCCL's part stays in progress
    }
    for (int finalizes = 0; finalizes < 2; ++finalizes) {
        const struct rank pair = split(self, 0, 0, 2);
        reduce(&pair, kCount, 1);
        meet();
        if (self->rank == 0) {
            pthread_t other;
            all_reduce(&pair, self->in, self->out, kCount, self->stream);
            CHECK(cuStreamQuery(self->stream) == CUDA_ERROR_NOT_READY);
            const double start = now();
            OK(pthread_create(&other, NULL, abort_soon, pair.comm));
            if (finalizes) {
                ncclCommFinalize(pair.comm);
            }
            OK(cuStreamSynchronize(self->stream));
            OK(pthread_join(other, NULL));
            CHECK(now() - start < 20);
        }
        meet();  // the others' communicators live until the call has ended
        if (self->rank != 0) {
            OK(ncclCommAbort(pair.comm));
        }
    }
}

// One rank cannot attach: none does. Its environment is refused before it meets the others.
void one_fails(struct rank* self) {
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

// Without memory to meet in, the rank that has none says so: the others may wait for it.
void no_memory(struct rank* self) {
    CUdeviceptr taken;
    for (size_t bytes = (size_t)1 << 30; bytes != 0; bytes /= 2) {
        while (cuMemAlloc(&taken, bytes) == CUDA_SUCCESS) {
        }
    }
    CHECK(call(self, kCount, ncclFloat, ncclSum) == ncclInternalError);
    OK(ncclCommAbort(self->comm));
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
    CHECK(call(self, kCount, ncclFloat, ncclSum) == ncclRemoteError);
    CHECK(self->rank == 0 ? ncclCommAbort(self->comm) == ncclSuccess
                          : ncclCommDestroy(self->comm) == ncclRemoteError);
}
void one_dies(void) {
    int statuses[kMaxRanks];
    run_processes(3, use_where_one_dies, statuses);
    CHECK(WIFSIGNALED(statuses[1]));
    CHECK(WIFEXITED(statuses[0]) && WEXITSTATUS(statuses[0]) == 0);
    CHECK(WIFEXITED(statuses[2]) && WEXITSTATUS(statuses[2]) == 0);
}

// A rank that has made its last call may go, which ncclCommFinalize waits for: the others'
// communicator has not failed, and asking whether it has leaves a capture alone.
void one_leaves(struct rank* self) {
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
