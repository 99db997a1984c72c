// What NCCL's user guide promises of streams in a group: the group waits for all of its streams,
// and all of them wait for the group.

#include "client.h"

enum { kStreams = 3, kCalls = 4, kPart = 1 << 15, kGroups = 40 };

static unsigned next(unsigned* state) {  // the same numbers on every machine
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

struct work {
    CUstream streams[kStreams];
    CUdeviceptr right, wrong;  // what the inputs are to hold, and what they hold before
    CUevent event;
};

// Lasts longer than it takes to queue a group.
static void write_slowly(const struct rank* self, const struct work* work, CUstream stream) {
    for (int i = 0; i < 16; ++i) {
        OK(cuMemcpyAsync(self->in, i < 15 ? work->wrong : work->right, kCalls * kPart * 4, stream));
    }
}

static void wait_for(const struct work* work, CUstream stream, CUstream before) {
    OK(cuEventRecord(work->event, before));
    OK(cuStreamWaitEvent(stream, work->event, 0));
}

// A group of random calls on random streams. One stream has written its input, and only one is
// waited for at its end.
static void run_group(struct rank* self, const struct work* work, int group, int is_captured) {
    unsigned shared = (unsigned)group, own = (unsigned)(group * 7 + self->rank);
    int gathers[kCalls];
    CUstream streams[kCalls];
    const int calls = 2 + (int)next(&shared) % (kCalls - 1);
    for (int i = 0; i < calls; ++i) {
        gathers[i] = next(&shared) % 3 == 0;
        streams[i] = work->streams[next(&own) % kStreams];
    }
    const CUstream writer = streams[next(&own) % (unsigned)calls];
    const CUstream reader = streams[next(&own) % (unsigned)calls];
    fill(work->right, self->rank, kCalls * kPart, group);
    poison(self->out, 2 * kCalls * kPart);
    meet();
    if (is_captured) {
        OK(cuStreamBeginCapture(writer, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        for (int i = 0; i < calls; ++i) {
            if (streams[i] != writer) {
                wait_for(work, streams[i], writer);
            }
        }
    }
    write_slowly(self, work, writer);
    OK(ncclGroupStart());
    for (int i = 0; i < calls; ++i) {
        const CUdeviceptr in = self->in + (CUdeviceptr)(i * kPart * 4);
        const CUdeviceptr out = self->out + (CUdeviceptr)(2 * i * kPart * 4);
        if (gathers[i]) {
            OK(ncclAllGather((const void*)in, (void*)out, kPart, ncclFloat, self->comm,
                             streams[i]));
        } else {
            all_reduce(self, in, out, kPart, streams[i]);
        }
    }
    OK(ncclGroupEnd());
    if (is_captured) {
        if (reader != writer) {
            wait_for(work, writer, reader);
        }
        CUgraph graph;
        CUgraphExec executable;
        OK(cuStreamEndCapture(writer, &graph));
        OK(cuGraphInstantiate(&executable, graph, 0));
        OK(cuGraphLaunch(executable, writer));
        OK(cuStreamSynchronize(writer));
        OK(cuGraphExecDestroy(executable));
        OK(cuGraphDestroy(graph));
    } else {
        OK(cuStreamSynchronize(reader));
    }
    float* all = malloc(2 * kCalls * kPart * sizeof(float));
    OK(cuMemcpyDtoH(all, self->out, 2 * kCalls * kPart * sizeof(float)));
    for (int i = 0; i < calls; ++i) {
        for (int k = 0; k < (gathers[i] ? 2 * kPart : kPart); ++k) {
            const size_t at = (size_t)(i * kPart + k % kPart);
            const float expected = gathers[i] ? element(k / kPart, at, group)
                                              : element(0, at, group) + element(1, at, group);
            if (all[2 * i * kPart + k] != expected) {
                fprintf(stderr,
                        "group %d, rank %d: element %d of call %d (%s) of %d is %g, not %g\n",
                        group, self->rank, k, i, gathers[i] ? "AllGather" : "AllReduce", calls,
                        (double)all[2 * i * kPart + k], (double)expected);
                exit(1);
            }
        }
    }
    free(all);
    for (int i = 0; i < kStreams; ++i) {
        OK(cuStreamSynchronize(work->streams[i]));
    }
}

void mixed(struct rank* self) {
    struct work work = {{self->stream, self->side, NULL}, 0, 0, NULL};
    OK(cuStreamCreate(&work.streams[2], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&work.event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&work.right, kCalls * kPart * 4));
    OK(cuMemAlloc(&work.wrong, kCalls * kPart * 4));
    fill(work.wrong, 5, kCalls * kPart, 1000);
    reduce(self, kCount, 1);
    for (int group = 0; group < kGroups; ++group) {
        run_group(self, &work, group, group % 4 == 3);
    }
    // A group's streams are all captured by the same graph, or none is.
    CUgraph graph;
    capture(self);
    OK(ncclGroupStart());
    all_reduce(self, self->in, self->out, kCount, self->stream);
    CHECK(ncclAllReduce((void*)self->in, (void*)self->out, kCount, ncclFloat, ncclSum, self->comm,
                        self->side) == ncclInvalidUsage);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    OK(cuStreamEndCapture(self->stream, &graph));
    OK(cuGraphDestroy(graph));
    reduce(self, kCount, 2);
    OK(cuMemFree(work.right));
    OK(cuMemFree(work.wrong));
    OK(cuEventDestroy(work.event));
    OK(cuStreamDestroy(work.streams[2]));
}

// In a group collective calls come before sends, which may wait for a later group of the peer's.
void sends(struct rank* self) {
    const size_t sent = is_stand_in() ? 4096 : kMost / 2;  // NCCL may buffer a small one
    reduce(self, kCount, 1);
    fill(self->in, self->rank, sent, 2);
    for (int round = 0; round < 3; ++round) {
        const int sender = round % 2;
        poison(self->out, kCount + sent);
        OK(ncclGroupStart());
        if (self->rank == sender) {
            OK(ncclSend((const void*)self->in, sent, ncclFloat, 1 - sender, self->comm,
                        self->stream));
        }
        all_reduce(self, self->in, self->out, kCount, self->stream);
        OK(ncclGroupEnd());
        if (self->rank != sender) {
            OK(ncclRecv((void*)(self->out + kCount * 4), sent, ncclFloat, sender, self->comm,
                        self->stream));
        }
        OK(cuStreamSynchronize(self->stream));
        expect(self, self->out, kCount, 2);
        if (self->rank != sender) {
            const struct rank alone = {.first = sender, .ranks = 1};
            expect(&alone, self->out + kCount * 4, sent, 2);
        }
        meet();
    }
}
