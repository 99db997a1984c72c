// Calls that are captured.

#include "client.h"

static void launch(const struct rank* self, CUgraphExec graph, CUdeviceptr out, int salt) {
    fill(self->in, self->rank, kCount, salt);
    poison(out, kCount);
    OK(cuGraphLaunch(graph, self->stream));
    OK(cuStreamSynchronize(self->stream));
    expect(self, out, kCount, salt);
}
void graphs(struct rank* self) {
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
    CUevent fork, join;
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
        ncclWindow_t windows[2];
        CUdeviceptr memory = registered(self, 1 << 20, &windows[0]);
        all_reduce(self, self->in, memory, kCount, self->stream);
        OK(cuStreamSynchronize(self->stream));  // its memory goes
        capture(self);
        deregister(self, memory, windows[0]);
        memory = registered(self, 1 << 20, &windows[1]);
        all_reduce(self, self->in, memory, kCount, self->stream);
        CUgraphExec graph = captured(self);
        for (int round = 0; round < 2; ++round) {
            launch(self, graph, memory, round);
            reduce(self, kCount, round);  // gives back the first window's memory
        }
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
