// How communicators are made, change and end.

#include "client.h"

// Two halves of four ranks, each with a communicator, beside that of all.
void halves(struct rank* self) {
    const int first = self->rank / 2 * 2;
    struct rank half = split(self, first, first, 2);
    for (int round = 0; round < 4; ++round) {
        reduce(self, kCount, round);
        reduce(&half, kCount, round);
    }
    expect_passed(self, 2);  // the first of each communicator
    OK(ncclCommDestroy(half.comm));
    // A communicator at the address of the old one attaches anew.
    half = split(self, first, first, 2);
    reduce(&half, kCount, 4);
    reduce(&half, kCount, 5);
    expect_passed(self, 1);
    OK(ncclCommDestroy(half.comm));
}

// The rest of the functions that the library replaces.
void others(struct rank* self) {
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
    const struct rank other = split(self, 0, 0, 3);
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
    all_reduce(&other, self->in, self->out, kCount, self->stream);  // the stand-in's answer
    expect_passed(self, 1);
    OK(ncclCommDestroy(other.comm));
    // Without rank 0, beside which the old communicator lives on.
    int excluded[] = {0};
    struct rank shrunk = *self;
    shrunk.first = 1;
    shrunk.ranks = 2;
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
    reduce(&shrunk, kCount, 9);
    reduce(&shrunk, kCount, 10);
    CHECK(stand_in_calls("AllReduce") == 4 * 3 + 2);
    OK(ncclCommDestroy(shrunk.comm));
}

// NCCL's communicators do not block: their part is in progress when a call returns.
void late(struct rank* self) {
    const struct rank second = split(self, 0, 0, 2);
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

// Finalizing and destroying wait for calls, however long other work in front of them takes.
void long_work(struct rank* self) {
    // -1 is NCCL_SPLIT_NOCOLOR.
    const struct rank pair = split(self, self->rank < 2 ? 0 : -1, 0, 2);
    const CUdeviceptr out = self->out + kCount * sizeof(float);
    CHECK((pair.comm == NULL) == (self->rank == 2));
    reduce(self, kCount, 1);
    if (self->rank < 2) {
        reduce(&pair, kCount, 1);
    }
    meet();
    if (self->rank == 0) {
        setenv("SYMM_TIMEOUT", "1", 1);  // kernels of these communicators have no limit
    }
    meet();
    usleep(self->rank == 2 ? 3000000 : 0);
    all_reduce(self, self->in, self->out, kCount, self->stream);
    if (self->rank < 2) {
        poison(out, kCount);
        all_reduce(&pair, self->in, out, kCount, self->stream);
        OK(self->rank == 0 ? ncclCommFinalize(pair.comm) : ncclSuccess);
        OK(ncclCommDestroy(pair.comm));
        OK(cuStreamQuery(self->stream));
        expect(&pair, out, kCount, 1);
    }
}

// Ranks that are processes.
void processes(struct rank* self) {
    for (int round = 0; round < 5; ++round) {
        reduce(self, kCount, round);
    }
    reduce(self, kMost, 5);
    CHECK(stand_in_calls("AllReduce") == 1);
    if (self->rank == 0) {
        exit(0);  // without an end of its communicator
    }
    OK(ncclCommDestroy(self->comm));
}
