// Memory that the program registers, and one thread with several ranks.

#include "client.h"

void windows(struct rank* self) {
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
        deregister(self, inside.in, in_window);
        inside.in = registered(self, bytes, &in_window);
        reduce(&inside, bytes / 4, 3 + round);
    }
    // Rank 0's window goes while its call waits for rank 1, which must not take away its memory.
    meet();
    usleep((useconds_t)self->rank * 200000);
    all_reduce(self, inside.in, inside.out, bytes / 4, self->stream);
    OK(ncclCommWindowDeregister(self->comm, in_window));
    all_reduce(self, self->in, self->out, 5, self->stream);
    all_reduce(self, self->in, self->out, 5, self->stream);
    OK(cuStreamSynchronize(self->stream));
    reduce(&inside, kCount, 8);  // staged: one of the two is a window no more
    expect_passed(self, 0);
    OK(ncclMemFree((void*)inside.in));
    for (int round = 0; round < 24; ++round) {  // more than a device has, used and not used
        inside.in = registered(self, (size_t)128 << 20, &in_window);
        if (round < 12) {
            reduce(&inside, 5, round);
        }
        deregister(self, inside.in, in_window);
    }
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
// A group of a call of each rank, made by this thread.
static void reduce_together(const struct rank* ranks, int count_of_ranks, size_t count, int salt) {
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuCtxSetCurrent(ranks[r].context));
        poison(ranks[r].out, count);
        fill(ranks[r].in, r, count, salt);
    }
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        all_reduce(&ranks[r], ranks[r].in, ranks[r].out, count, ranks[r].stream);
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuCtxSetCurrent(ranks[r].context));
        OK(cuStreamSynchronize(ranks[r].stream));
        expect(&ranks[r], ranks[r].out, count, salt);
    }
}

// One thread with a communicator for each of its GPUs, as nccl-tests with -g 3.
static void one_thread_of(int count_of_ranks) {
    struct rank ranks[kMaxRanks], others[kMaxRanks], inside[kMaxRanks];
    ncclWindow_t handles[kMaxRanks];
    const int before = is_stand_in() ? stand_in_calls("AllReduce") : 0;
    for (int r = 0; r < count_of_ranks; ++r) {
        ranks[r] = (struct rank){.rank = r, .ranks = count_of_ranks};
        make(&ranks[r], 5 * kMost);
    }
    OK(ncclGetUniqueId(&id));
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuCtxSetCurrent(ranks[r].context));
        OK(ncclCommInitRank(&ranks[r].comm, count_of_ranks, id, r));
    }
    OK(ncclGroupEnd());
    // A GPU of one rank has default streams of its own.
    const int share = ordinal_of(count_of_ranks - 1) != count_of_ranks - 1;
    for (int r = 0; r < count_of_ranks; ++r) {
        others[r] = ranks[r];
        others[r].stream = share ? ranks[r].stream : CU_STREAM_PER_THREAD;
    }
    for (int i = 0; i < 4; ++i) {
        reduce_together(ranks, count_of_ranks, (const size_t[]){10, 20, kCount, 200000}[i], i);
    }
    // Windows of 10M, registered in a group. Calls in them need no memory of the ranks', but the
    // first ones of as many bytes, and of more, that are in none: the ranks make it then.
    OK(ncclGroupStart());
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(cuCtxSetCurrent(ranks[r].context));
        inside[r] = ranks[r];
        inside[r].in = inside[r].out = registered(&ranks[r], (size_t)10 << 20, &handles[r]);
    }
    OK(ncclGroupEnd());
    reduce_together(inside, count_of_ranks, 9 * kMost / 4, 4);
    for (int r = 0; r < count_of_ranks; ++r) {
        deregister(&ranks[r], inside[r].in, handles[r]);
    }
    reduce_together(ranks, count_of_ranks, 20, 5);
    reduce_together(others, count_of_ranks, 9 * kMost / 4, 6);
    reduce_together(ranks, count_of_ranks, 5 * kMost, 7);
    // All refuse a call, and meet in the next one.
    for (int i = 0; i < 2; ++i) {
        OK(ncclGroupStart());
        for (int r = 0; r < count_of_ranks; ++r) {
            OK(misaligned(&ranks[r]));
        }
        CHECK(ncclGroupEnd() == ncclInvalidArgument);
        reduce_together(ranks, count_of_ranks, 20, 8);
    }
    for (int r = 0; r < count_of_ranks; ++r) {
        others[r].stream = share ? ranks[r].stream : NULL;
    }
    reduce_together(others, count_of_ranks, 10, 9);
    CHECK(!is_stand_in() || stand_in_calls("AllReduce") == before + count_of_ranks);
    for (int r = 0; r < count_of_ranks; ++r) {
        OK(ncclCommDestroy(ranks[r].comm));
        leave(&ranks[r]);
    }
}
void one_thread(void) {
    one_thread_of(3);
    one_thread_of(2);
}
