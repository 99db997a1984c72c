// Capture of a stream into a graph, and its replay.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

class Capture : public Driver {
protected:
    static constexpr std::size_t kBytes = 70001;

    void SetUp() override {
        Driver::SetUp();
        ASSERT_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
        ASSERT_OK(cuStreamCreate(&side_, CU_STREAM_NON_BLOCKING));
        ASSERT_OK(cuEventCreate(&fork_, CU_EVENT_DISABLE_TIMING));
        ASSERT_OK(cuEventCreate(&join_, CU_EVENT_DISABLE_TIMING));
        ASSERT_OK(cuMemAlloc(&source_, kBytes));
        ASSERT_OK(cuMemAlloc(&target_, kBytes));
        write_bytes(target_, std::vector<unsigned char>(kBytes, 0));
    }
    void TearDown() override {
        EXPECT_OK(cuMemFree(target_));
        EXPECT_OK(cuMemFree(source_));
        EXPECT_OK(cuEventDestroy(join_));
        EXPECT_OK(cuEventDestroy(fork_));
        EXPECT_OK(cuStreamDestroy(side_));
        EXPECT_OK(cuStreamDestroy(stream_));
        Driver::TearDown();
    }

    void begin() { ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); }
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
    CUstream stream_ = nullptr;
    CUstream side_ = nullptr;
    CUevent fork_ = nullptr;
    CUevent join_ = nullptr;
    CUdeviceptr source_ = 0;
    CUdeviceptr target_ = 0;
};
using Graphs = Capture;

TEST_F(Capture, RunsNothing) {
    begin();
    EXPECT_OK(cuMemsetD8Async(target_, 1, kBytes, stream_));
    const CUgraph graph = end();
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(target_, kBytes), std::vector<unsigned char>(kBytes, 0));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Capture, LeavesTheStreamUsable) {
    begin();
    EXPECT_OK(cuGraphDestroy(end()));
    EXPECT_OK(cuMemsetD8Async(target_, 2, kBytes, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(target_, 1)[0], 2);
}

TEST_F(Capture, DoesNotTouchOtherStreams) {
    begin();
    EXPECT_OK(cuMemsetD8Async(target_, 3, kBytes, side_));
    EXPECT_OK(cuGraphDestroy(end()));
    EXPECT_OK(cuStreamSynchronize(side_));
    EXPECT_EQ(read_bytes(target_, 1)[0], 3);
}

TEST_F(Capture, IsLostWhenItsThreadWaitsForAnotherStream) {
    begin();
    EXPECT_RESULT(cuStreamSynchronize(side_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_OK(cuStreamSynchronize(side_));  // allowed again after the capture
}

TEST_F(Capture, BeginsOnce) {
    begin();
    EXPECT_RESULT(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  CUDA_ERROR_ILLEGAL_STATE);
    CUgraph graph = nullptr;
    (void)cuStreamEndCapture(stream_, &graph);
    if (graph != nullptr) {
        EXPECT_OK(cuGraphDestroy(graph));
    }
}

TEST_F(Capture, EndsWhatBegan) {
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(Capture, KnowsNoOtherMode) {
    EXPECT_RESULT(cuStreamBeginCapture(stream_, static_cast<CUstreamCaptureMode>(3)),
                  CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Capture, IsNotForTheDefaultStream) {
    EXPECT_RESULT(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
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
    EXPECT_RESULT(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_RESULT(cuStreamIsCapturing(stream_, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Capture, AWaitForTheStreamSpoilsIt) {
    begin();
    EXPECT_RESULT(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_OK(cuStreamSynchronize(stream_));
}

TEST_F(Capture, AQueryOfTheStreamSpoilsIt) {
    begin();
    EXPECT_RESULT(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, ItsEventsAreNotForTheHost) {
    begin();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_RESULT(cuEventQuery(fork_), CUDA_ERROR_CAPTURED_EVENT,
                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    (void)cuStreamEndCapture(stream_, &graph);
    if (graph != nullptr) {
        EXPECT_OK(cuGraphDestroy(graph));
    }
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_OK(cuEventSynchronize(fork_));
}

TEST_F(Capture, IsLostWhenItsThreadAllocates) {
    begin();
    void* memory = nullptr;
    EXPECT_RESULT(cuMemHostAlloc(&memory, 64, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_OK(cuMemHostAlloc(&memory, 64, 0));
    EXPECT_OK(cuMemFreeHost(memory));
}

// Allocates in another thread, which first sets `mode`, while this one captures with `capture`.
CUresult allocate_beside(CUstream stream, CUstreamCaptureMode capture, CUstreamCaptureMode mode) {
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&context));
    EXPECT_OK(cuStreamBeginCapture(stream, capture));
    CUresult result = CUDA_SUCCESS;
    CUdeviceptr memory = 0;
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);  // a thread's initial mode
        result = cuMemAlloc(&memory, 64);
    }).join();
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream, &graph),
                  result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (graph != nullptr) {
        EXPECT_OK(cuGraphDestroy(graph));
    }
    EXPECT_OK(cuMemFree(memory));
    return result;
}

TEST_F(Capture, ForbidsOtherThreadsToAllocateIfBothAreGlobal) {
    constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
    constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(allocate_beside(stream_, kGlobal, kGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_OK(allocate_beside(stream_, kGlobal, kLocal));
    EXPECT_OK(allocate_beside(stream_, kGlobal, kRelaxed));
    EXPECT_OK(allocate_beside(stream_, kLocal, kGlobal));
    EXPECT_OK(allocate_beside(stream_, kRelaxed, kGlobal));
}

TEST_F(Capture, IsLostWhenAnotherThreadAsksForAnEvent) {
    EXPECT_OK(cuEventRecord(fork_, side_));
    EXPECT_OK(cuStreamSynchronize(side_));
    EXPECT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&context));
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_RESULT(cuEventQuery(fork_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
        EXPECT_OK(cuEventQuery(fork_));
    }).join();
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Capture, LetsARelaxedThreadAllocate) {
    begin();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    void* memory = nullptr;
    EXPECT_OK(cuMemHostAlloc(&memory, 64, 0));
    EXPECT_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_OK(cuGraphDestroy(end()));
    EXPECT_OK(cuMemFreeHost(memory));
}

TEST_F(Capture, SpreadsOverAnEvent) {
    begin();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_OK(cuStreamWaitEvent(side_, fork_, 0));
    EXPECT_OK(cuMemsetD8Async(source_, 4, kBytes, side_));
    EXPECT_OK(cuEventRecord(join_, side_));
    EXPECT_OK(cuStreamWaitEvent(stream_, join_, 0));
    EXPECT_OK(cuMemcpyAsync(target_, source_, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    EXPECT_OK(cuStreamSynchronize(side_));
    EXPECT_OK(cuGraphLaunch(graph, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(target_, kBytes), std::vector<unsigned char>(kBytes, 4));
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Capture, WantsItsSideStreamsBack) {
    begin();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_OK(cuStreamWaitEvent(side_, fork_, 0));
    EXPECT_OK(cuMemsetD8Async(source_, 5, kBytes, side_));
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT_OK(cuStreamSynchronize(side_));
}

TEST_F(Capture, EndsWhereItBegan) {
    begin();
    EXPECT_OK(cuEventRecord(fork_, stream_));
    EXPECT_OK(cuStreamWaitEvent(side_, fork_, 0));
    CUgraph graph = nullptr;
    EXPECT_RESULT(cuStreamEndCapture(side_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    (void)cuStreamEndCapture(stream_, &graph);
    if (graph != nullptr) {
        EXPECT_OK(cuGraphDestroy(graph));
    }
}

TEST_F(Capture, DependsOnNothingOutside) {
    EXPECT_OK(cuEventRecord(fork_, side_));
    begin();
    EXPECT_RESULT(cuStreamWaitEvent(stream_, fork_, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CUgraph graph = nullptr;
    (void)cuStreamEndCapture(stream_, &graph);
    if (graph != nullptr) {
        EXPECT_OK(cuGraphDestroy(graph));
    }
}

TEST_F(Graphs, RunWhenLaunched) {
    begin();
    EXPECT_OK(cuMemsetD8Async(source_, 6, kBytes, stream_));
    EXPECT_OK(cuMemcpyAsync(target_, source_, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    EXPECT_OK(cuGraphLaunch(graph, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(target_, kBytes), std::vector<unsigned char>(kBytes, 6));
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Graphs, RunAgainAndAgain) {
    begin();
    EXPECT_OK(cuMemcpyAsync(target_, source_, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    for (unsigned round = 0; round < 10; ++round) {
        const auto written = pattern(kBytes, round);
        write_bytes(source_, written);
        EXPECT_OK(cuGraphLaunch(graph, stream_));
        EXPECT_OK(cuStreamSynchronize(stream_));
        EXPECT_EQ(read_bytes(target_, kBytes), written) << "round " << round;
    }
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Graphs, AreQueuedLikeOtherWork) {
    begin();
    EXPECT_OK(cuMemcpyAsync(target_, source_, kBytes, stream_));
    const CUgraphExec graph = executable(end());
    for (unsigned char value = 1; value < 20; ++value) {
        EXPECT_OK(cuMemsetD8Async(source_, value, kBytes, side_));
        EXPECT_OK(cuGraphLaunch(graph, side_));
        EXPECT_OK(cuMemsetD8Async(source_, 0xFF, kBytes, side_));
    }
    EXPECT_OK(cuStreamSynchronize(side_));
    EXPECT_EQ(read_bytes(target_, kBytes), std::vector<unsigned char>(kBytes, 19));
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Graphs, MayBeEmpty) {
    begin();
    const CUgraphExec graph = executable(end());
    EXPECT_OK(cuGraphLaunch(graph, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_OK(cuGraphExecDestroy(graph));
}

TEST_F(Graphs, AreInstantiatedMoreThanOnce) {
    begin();
    EXPECT_OK(cuMemsetD32Async(target_, 0x07070707, kBytes / 4, stream_));
    const CUgraph graph = end();
    CUgraphExec first = nullptr;
    CUgraphExec second = nullptr;
    ASSERT_OK(cuGraphInstantiate(&first, graph, 0));
    ASSERT_OK(cuGraphInstantiate(&second, graph, 0));
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_OK(cuGraphExecDestroy(first));
    EXPECT_OK(cuGraphLaunch(second, stream_));
    EXPECT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_bytes(target_, 1)[0], 7);
    EXPECT_OK(cuGraphExecDestroy(second));
}

TEST_F(Graphs, OutOfNothingAreRefused) {
    CUgraphExec made = nullptr;
    EXPECT_RESULT(cuGraphInstantiate(&made, nullptr, 0), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuGraphLaunch(nullptr, stream_), CUDA_ERROR_INVALID_VALUE,
                  CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuGraphDestroy(nullptr), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuGraphExecDestroy(nullptr), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Graphs, NeedSomewhereToGo) {
    begin();
    const CUgraph graph = end();
    EXPECT_RESULT(cuGraphInstantiate(nullptr, graph, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace symm::conformance
