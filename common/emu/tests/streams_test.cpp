// Streams, events, copies and graphs of the emulated driver, with kernels that hold them up.

#include <algorithm>
#include <atomic>

#include "common/emu/tests/support.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

/// Two more streams, and a kernel that blocks a stream until `gate_` opens.
class Queues : public EmulatedDriver {
protected:
    ~Queues() override {
        gate_ = true;
        EXPECT_OK(cuCtxSynchronize());
    }
    void hold(CUstream stream) {
        queue(stream, [this] {
            for (int round = 0; !gate_; ++round) {
                simt::back_off(round);
            }
        });
    }
    static void queue(CUstream stream, std::function<void()> what) {
        EXPECT_OK(run(
            1, 1, [what = std::move(what)](const simt::ThreadBlock&) { what(); }, stream));
    }

    Stream stream_;
    Stream other_;
    std::atomic<bool> gate_{false};
};

TEST_F(Queues, WorkInOrderAndLater) {
    std::vector<int> order;
    hold(stream_);
    for (int i = 0; i < 100; ++i) {
        queue(stream_, [&order, i] { order.push_back(i); });
    }
    EXPECT_RESULT(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
    gate_ = true;
    EXPECT_OK(cuStreamSynchronize(stream_));
    ASSERT_EQ(order.size(), 100u);
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(Queues, FinishTheirWorkAfterTheyAreDestroyed) {
    CUstream stream = nullptr;
    std::atomic<int> done{0};
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    hold(stream);
    const Event event;
    for (int i = 0; i < 5; ++i) {
        queue(stream, [&done] { ++done; });
    }
    ASSERT_OK(cuEventRecord(event, stream));
    EXPECT_OK(cuStreamDestroy(stream));
    EXPECT_RESULT(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    gate_ = true;
    EXPECT_OK(cuEventSynchronize(event));
    EXPECT_EQ(done, 5);
}

TEST_F(Queues, WaitForEventsOfOtherStreams) {
    const Event start;
    CUevent event = nullptr;
    ASSERT_OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    int value = 0, seen = -1;
    float milliseconds = 0;
    ASSERT_OK(cuEventRecord(start, stream_));
    hold(stream_);
    queue(stream_, [&value] { value = 42; });
    ASSERT_OK(cuEventRecord(event, stream_));
    ASSERT_OK(cuStreamWaitEvent(other_, event, 0));
    queue(other_, [&] { seen = value; });
    EXPECT_RESULT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    EXPECT_RESULT(cuEventElapsedTime(&milliseconds, start, event), CUDA_ERROR_NOT_READY);
    // Destroying the event does not change a wait that is queued.
    EXPECT_OK(cuEventDestroy(event));
    EXPECT_RESULT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    gate_ = true;
    EXPECT_OK(cuStreamSynchronize(other_));
    EXPECT_EQ(seen, 42);
}

TEST_F(Queues, CopyPageableMemoryBeforeTheCallReturns) {
    constexpr std::size_t kBytes = 4004;
    Shared memory(1, {0, 1});
    const auto host = [](auto& bytes) { return reinterpret_cast<CUdeviceptr>(bytes.data()); };
    auto in = pattern(kBytes, 1), out = filled(kBytes, 0);
    ASSERT_OK(cuMemcpyAsync(memory.base() + 4, host(in), kBytes, stream_));
    std::ranges::fill(in, 0);
    ASSERT_OK(cuMemcpyAsync(host(out), memory.base() + 4, kBytes, stream_));
    EXPECT_EQ(out, pattern(kBytes, 1));
    EXPECT_INVALID(cuMemcpyAsync(memory.base() + kBlock - 4, memory.base(), 8, stream_));
    EXPECT_INVALID(cuMemcpyAsync(0, memory.base(), 8, stream_));
    EXPECT_INVALID(cuMemcpyHtoD(host(out), in.data(), 4));
}

TEST_F(Queues, ReplayKernelsThatTheyCaptured) {
    Shared memory(0, {0});
    auto* counter = memory.as<unsigned>();
    const Event fork, join;
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASSERT_OK(cuMemsetD32Async(memory.base(), 10, 1, stream_));
    ASSERT_OK(cuEventRecord(fork, stream_));
    ASSERT_OK(cuStreamWaitEvent(other_, fork, 0));
    queue(other_, [counter] { *counter += 5; });
    ASSERT_OK(cuEventRecord(join, other_));
    ASSERT_OK(cuStreamWaitEvent(stream_, join, 0));
    queue(stream_, [counter] { counter[1] += *counter; });
    EXPECT_RESULT(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    ASSERT_OK(cuStreamEndCapture(stream_, &graph));
    EXPECT_OK(cuStreamQuery(other_));  // no longer in the capture
    ASSERT_OK(cuGraphInstantiate(&executable, graph, 0));
    EXPECT_OK(cuGraphDestroy(graph));
    EXPECT_EQ(read_word(memory.base() + 4), 0u);  // captured, not run
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(cuGraphLaunch(executable, stream_));
    }
    ASSERT_OK(cuGraphExecDestroy(executable));  // queued launches still run
    EXPECT_RESULT(cuGraphExecDestroy(executable), CUDA_ERROR_INVALID_HANDLE);
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(read_word(memory.base()), 15u);
    EXPECT_EQ(read_word(memory.base() + 4), 45u);
}

TEST_F(Queues, EndACaptureInTheThreadThatBeganIt) {
    CUgraph graph = nullptr;
    ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    in_another_thread([&] {
        EXPECT_RESULT(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    });
    ASSERT_OK(cuStreamEndCapture(stream_, &graph));
    EXPECT_OK(cuGraphDestroy(graph));
}

TEST_F(Queues, BelongToAContext) {
    CUcontext mine = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
#if CUDA_VERSION >= 13000
    ASSERT_OK(cuCtxCreate(&mine, nullptr, 0, 1));
#else
    ASSERT_OK(cuCtxCreate(&mine, 0, 1));
#endif
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuEventCreate(&event, 0));
    // A stream of the other context.
    EXPECT_RESULT(cuEventRecord(event, stream_), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuEventRecord(event, stream));
    EXPECT_OK(cuStreamWaitEvent(stream_, event, 0));
    EXPECT_OK(cuCtxDestroy(mine));  // its stream and event go with it
    EXPECT_RESULT(cuCtxDestroy(mine), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_RESULT(cuCtxSetCurrent(mine), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace symm::emu
