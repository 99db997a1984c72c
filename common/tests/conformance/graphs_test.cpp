// Capture of a stream into a graph, and its replay.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

class Capture : public Driver {
protected:
    static constexpr std::size_t kBytes = 70001;
    static constexpr auto kUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
        ASSERT_OK(cuStreamBeginCapture(stream_, mode));
    }
    // Ends the capture of the stream and destroys its graph.
    CUresult drop() {
        CUgraph graph = nullptr;
        const CUresult result = cuStreamEndCapture(stream_, &graph);
        EXPECT_EQ(graph != nullptr, result == CUDA_SUCCESS);
        if (graph != nullptr) {
            EXPECT_OK(cuGraphDestroy(graph));
        }
        return result;
    }
    CUgraph end() {
        CUgraph graph = nullptr;
        EXPECT_OK(cuStreamEndCapture(stream_, &graph));
        EXPECT_NE(graph, nullptr);
        return graph;
    }
    // Instantiates and destroys the graph.
    CUgraphExec executable(CUgraph graph) {
        CUgraphExec made = nullptr;
        EXPECT_OK(cuGraphInstantiate(&made, graph, 0));
        EXPECT_OK(cuGraphDestroy(graph));
        return made;
    }
    void fill(CUdeviceptr to, unsigned char value, CUstream stream) {
        EXPECT_OK(cuMemsetD8Async(to, value, kBytes, stream));
    }
    void fork() {
        EXPECT_OK(cuEventRecord(fork_, stream_));
        EXPECT_OK(cuStreamWaitEvent(side_, fork_, 0));
    }
    // Waits for the stream; expects its target to hold that value.
    void expect_target(unsigned char value, CUstream stream) {
        EXPECT_OK(cuStreamSynchronize(stream));
        EXPECT_EQ(read_bytes(target_.base, kBytes), filled(kBytes, value));
    }

    Stream stream_;
    Stream side_;
    Event fork_{CU_EVENT_DISABLE_TIMING};
    Event join_{CU_EVENT_DISABLE_TIMING};
    Allocation source_{kBytes};
    Allocation target_{kBytes};
};
using Graphs = Capture;

TEST_F(Capture, RunsNothingAndLeavesTheStreamUsable) {
    write_bytes(target_.base, filled(kBytes, 0));
    begin();
    fill(target_.base, 1, stream_);
    EXPECT_OK(drop());
    expect_target(0, stream_);
    fill(target_.base, 2, stream_);
    expect_target(2, stream_);
}

TEST_F(Capture, BeginsOnceAndEndsWhatBegan) {
    EXPECT_RESULT(drop(), CUDA_ERROR_ILLEGAL_STATE);
    begin();
    EXPECT_RESULT(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  CUDA_ERROR_ILLEGAL_STATE);
    drop();
}

TEST_F(Capture, KnowsNoOtherModeAndNoDefaultStream) {
    EXPECT_INVALID(cuStreamBeginCapture(stream_, static_cast<CUstreamCaptureMode>(3)));
    EXPECT_RESULT(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), kUnsupported,
                  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

TEST_F(Capture, TellsWhetherItIsActive) {
    const auto status = [this] {
        auto found = static_cast<CUstreamCaptureStatus>(99);
        EXPECT_OK(cuStreamIsCapturing(stream_, &found));
        return found;
    };
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);
    begin();
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_RESULT(cuStreamQuery(stream_), kUnsupported);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_INVALID(cuStreamIsCapturing(stream_, nullptr));
}

TEST_F(Capture, HasANumberThatItsStreamsShareAndNoOtherCaptureHas) {
    const auto number = [](CUstream stream) {
        auto status = CU_STREAM_CAPTURE_STATUS_NONE;
        cuuint64_t id = 0;
#if CUDA_VERSION >= 13000
        EXPECT_OK(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
#else
        EXPECT_OK(cuStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr));
#endif
        return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
    };
    EXPECT_EQ(number(stream_), 0U);
    begin();
    const cuuint64_t first = number(stream_);
    EXPECT_NE(first, 0U);
    EXPECT_EQ(number(side_), 0U);
    fork();
    EXPECT_EQ(number(side_), first);
    drop();
    EXPECT_EQ(number(side_), 0U);
    begin();
    EXPECT_NE(number(stream_), first);
    drop();
}

TEST_F(Capture, IsLostWhenItsThreadWaitsOrAllocates) {
    void* memory = nullptr;
    const std::function<CUresult()> calls[] = {
        [&] { return cuStreamSynchronize(stream_); },
        [&] { return cuStreamSynchronize(side_); },
        [&] { return cuMemHostAlloc(&memory, 64, 0); },
    };
    for (const auto& call : calls) {
        begin();
        EXPECT_RESULT(call(), kUnsupported);
        EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        EXPECT_OK(call());  // allowed again after the capture
    }
    EXPECT_OK(cuMemFreeHost(memory));
}

TEST_F(Capture, ItsEventsAreNotForTheHost) {
    begin();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_RESULT(cuEventQuery(fork_), CUDA_ERROR_CAPTURED_EVENT, kUnsupported);
    drop();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_OK(cuEventSynchronize(fork_));
}

TEST_F(Capture, ForbidsOtherThreadsToAllocateIfBothAreGlobal) {
    constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
    constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    // Of the capture and of the thread that allocates.
    for (const auto& [capture, thread] : {std::pair(kGlobal, kGlobal),
                                          {kGlobal, kLocal},
                                          {kGlobal, kRelaxed},
                                          {kLocal, kGlobal},
                                          {kRelaxed, kGlobal}}) {
        const bool forbidden = capture == kGlobal && thread == kGlobal;
        CUdeviceptr memory = 0;
        begin(capture);
        in_another_thread([&, mode = thread]() mutable {
            EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
            EXPECT_EQ(mode, kGlobal);  // a thread's initial mode
            EXPECT_RESULT(cuMemAlloc(&memory, 64), forbidden ? kUnsupported : CUDA_SUCCESS);
        });
        EXPECT_RESULT(drop(), forbidden ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
        EXPECT_OK(cuMemFree(memory));
    }
}

TEST_F(Capture, IsLostWhenAThreadWaitsForItsContext) {
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&context));
    const auto synchronize = [&](CUstreamCaptureMode mode) {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_RESULT(cuCtxSynchronize(), kUnsupported);
        EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    };
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
        begin(mode);
        synchronize(mode);
        EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        begin(mode);
        in_another_thread([&] { synchronize(CU_STREAM_CAPTURE_MODE_GLOBAL); });
        EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
}

TEST_F(Capture, IsLostWhenAnotherThreadAsksForAnEvent) {
    EXPECT_OK(cuEventRecord(fork_, side_));
    EXPECT_OK(cuStreamSynchronize(side_));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    in_another_thread([&] {
        EXPECT_RESULT(cuEventQuery(fork_), kUnsupported);
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_OK(cuEventQuery(fork_));
    });
    EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, SpreadsOverAnEvent) {
    begin();
    fork();
    fill(source_.base, 4, side_);
    EXPECT_OK(cuEventRecord(join_, side_));
    EXPECT_OK(cuStreamWaitEvent(stream_, join_, 0));
    EXPECT_OK(cuMemcpyAsync(target_.base, source_.base, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    EXPECT_OK(cuStreamSynchronize(side_));
    EXPECT_OK(cuGraphLaunch(graph, stream_));
    expect_target(4, stream_);
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Capture, WantsItsSideStreamsBack) {
    begin();
    fork();
    fill(source_.base, 5, side_);
    EXPECT_RESULT(drop(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_OK(cuStreamSynchronize(side_));
}

TEST_F(Capture, EndsWhereItBegan) {
    begin();
    fork();
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(side_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    drop();
}

TEST_F(Capture, DependsOnNothingOutside) {
    EXPECT_OK(cuEventRecord(fork_, side_));
    begin();
    EXPECT_RESULT(cuStreamWaitEvent(stream_, fork_, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    drop();
}

TEST_F(Graphs, AreQueuedLikeOtherWork) {
    begin();
    EXPECT_OK(cuMemcpyAsync(target_.base, source_.base, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    for (unsigned char value = 1; value < 20; ++value) {
        fill(source_.base, value, side_);
        EXPECT_OK(cuGraphLaunch(graph, side_));
        fill(source_.base, 0xFF, side_);
    }
    expect_target(19, side_);
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Graphs, AreInstantiatedMoreThanOnce) {
    begin();
    fill(target_.base, 7, stream_);
    const CUgraph graph = end();
    CUgraphExec first = nullptr;
    CUgraphExec second = nullptr;
    EXPECT_INVALID(cuGraphInstantiate(nullptr, graph, 0));
    ASSERT_OK(cuGraphInstantiate(&first, graph, 0));
    ASSERT_OK(cuGraphInstantiate(&second, graph, 0));
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_OK(cuGraphExecDestroy(first));
    EXPECT_OK(cuGraphLaunch(second, stream_));
    expect_target(7, stream_);
    EXPECT_OK(cuGraphExecDestroy(second));
}

TEST_F(Graphs, OutOfNothingAreRefused) {
    CUgraphExec made = nullptr;
    for (const CUresult result :
         {cuGraphInstantiate(&made, nullptr, 0), cuGraphLaunch(nullptr, stream_),
          cuGraphDestroy(nullptr), cuGraphExecDestroy(nullptr)}) {
        EXPECT_RESULT(result, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE);
    }
}

}  // namespace
}  // namespace symm::conformance
