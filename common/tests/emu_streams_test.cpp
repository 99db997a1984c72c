// Streams, events, copies and graphs of the emulated driver.

#include <atomic>
#include <thread>

#include "common/emu/launch.hpp"
#include "common/simt/back_off.hpp"
#include "common/tests/emu_support.hpp"

namespace symm::emu {
namespace {

/// Two more streams, and a kernel that blocks a stream until `gate_` opens.
class Streams : public EmulatedDriver {
protected:
    void SetUp() override {
        EmulatedDriver::SetUp();
        ASSERT_EQ(emu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        ASSERT_EQ(emu::cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    void TearDown() override {
        gate_ = true;
        EXPECT_EQ(emu::cuStreamDestroy(stream_), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuStreamDestroy(other_), CUDA_SUCCESS);
        EmulatedDriver::TearDown();
    }
    void hold(CUstream stream) {
        EXPECT_EQ(run(stream,
                      [this] {
                          for (int round = 0; !gate_; ++round) {
                              simt::back_off(round);
                          }
                      }),
                  CUDA_SUCCESS);
    }
    CUresult run(CUstream stream, std::function<void()> what) {
        return launch_kernel(stream,
                             {"test kernel", dim3(1), dim3(1), 0,
                              [what = std::move(what)](const simt::ThreadBlock&) { what(); }});
    }
    CUevent new_event(unsigned flags = 0) {
        CUevent event = nullptr;
        EXPECT_EQ(emu::cuEventCreate(&event, flags), CUDA_SUCCESS);
        return event;
    }

    CUstream stream_ = nullptr, other_ = nullptr;
    std::atomic<bool> gate_{false};
};

TEST_F(Streams, WorkInOrderAndLater) {
    std::vector<int> order;
    hold(stream_);
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(run(stream_, [&order, i] { order.push_back(i); }), CUDA_SUCCESS);
    }
    EXPECT_EQ(emu::cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
    gate_ = true;
    EXPECT_EQ(emu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamQuery(stream_), CUDA_SUCCESS);
    ASSERT_EQ(order.size(), 100u);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(order[i], i);
    }
}

TEST_F(Streams, FinishTheirWorkAfterTheyAreDestroyed) {
    CUstream stream = nullptr;
    std::atomic<int> done{0};
    ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    hold(stream);
    CUevent event = new_event();
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(run(stream, [&done] { ++done; }), CUDA_SUCCESS);
    }
    ASSERT_EQ(emu::cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamDestroy(stream), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    gate_ = true;
    EXPECT_EQ(emu::cuEventSynchronize(event), CUDA_SUCCESS);
    EXPECT_EQ(done, 5);
    EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
}

TEST_F(Streams, WaitForEventsOfOtherStreams) {
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    int value = 0, seen = -1;
    hold(stream_);
    ASSERT_EQ(run(stream_, [&value] { value = 42; }), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuEventRecord(event, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamWaitEvent(other_, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(run(other_, [&] { seen = value; }), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventQuery(event), CUDA_ERROR_NOT_READY);
    // Destroying the event does not change a wait that is queued.
    EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
    gate_ = true;
    EXPECT_EQ(emu::cuStreamSynchronize(other_), CUDA_SUCCESS);
    EXPECT_EQ(seen, 42);
    EXPECT_EQ(emu::cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Streams, AreTimedByEvents) {
    CUevent start = new_event(), end = new_event(), untimed = new_event(CU_EVENT_DISABLE_TIMING);
    float milliseconds = -1;
    EXPECT_EQ(emu::cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuEventQuery(start), CUDA_SUCCESS);  // never recorded
    ASSERT_EQ(emu::cuEventRecord(start, stream_), CUDA_SUCCESS);
    hold(stream_);
    ASSERT_EQ(emu::cuEventRecord(end, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuEventRecord(untimed, stream_), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
    gate_ = true;
    ASSERT_EQ(emu::cuEventSynchronize(end), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(emu::cuEventElapsedTime(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
    for (CUevent event : {start, end, untimed}) {
        EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
    }
}

TEST_F(Streams, CopyAndFillInEveryDirection) {
    constexpr std::size_t kCount = 1001;
    Mapped here(kBlock, device_memory(0)), there(kBlock, device_memory(1));
    ASSERT_EQ(here.allow_devices(2), CUDA_SUCCESS);
    ASSERT_EQ(there.allow_devices(2), CUDA_SUCCESS);
    void* pinned = nullptr;
    ASSERT_EQ(emu::cuMemHostAlloc(&pinned, kCount * 4, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
    std::vector<unsigned> in(kCount), out(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        in[i] = static_cast<unsigned>(i * 7919);
    }
    const auto host = [](auto* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
    ASSERT_EQ(emu::cuMemcpyAsync(here.pointer + 4, host(in.data()), kCount * 4, stream_),
              CUDA_SUCCESS);
    std::fill(in.begin(), in.end(), 0u);  // pageable memory was read when the call returned
    ASSERT_EQ(emu::cuMemsetD8Async(there.pointer, 0xab, kBlock, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyAsync(there.pointer, here.pointer + 4, kCount * 4, stream_),
              CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyAsync(host(pinned), there.pointer, kCount * 4, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyAsync(host(out.data()), host(pinned), kCount * 4, stream_),
              CUDA_SUCCESS);
    for (std::size_t i = 0; i < kCount; ++i) {  // pageable memory is written when the call returns
        ASSERT_EQ(out[i], i * 7919);
    }
    unsigned behind = 0;
    ASSERT_EQ(emu::cuMemcpyDtoH(&behind, there.pointer + kCount * 4, 4), CUDA_SUCCESS);
    EXPECT_EQ(behind, 0xababababu);
    ASSERT_EQ(emu::cuMemsetD32Async(there.pointer + 8, 0x01020304, 3, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyAsync(host(&behind), there.pointer + 16, 4, stream_), CUDA_SUCCESS);
    EXPECT_EQ(behind, 0x01020304u);
    EXPECT_EQ(emu::cuMemsetD32Async(there.pointer + 2, 0, 3, stream_), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemcpyAsync(there.pointer + kBlock - 4, here.pointer, 8, stream_),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemcpyAsync(0, here.pointer, 8, stream_), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuMemcpyHtoD(host(&behind), &behind, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(emu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemFreeHost(pinned), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, ReplayWhatTheyCaptured) {
    Mapped memory(kBlock);
    ASSERT_EQ(memory.allow_devices(1), CUDA_SUCCESS);
    auto* counter = memory.as<unsigned>();
    CUevent fork = new_event(), join = new_event();
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(emu::cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_ERROR_ILLEGAL_STATE);
    ASSERT_EQ(emu::cuMemsetD32Async(memory.pointer, 10, 1, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuEventRecord(fork, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamWaitEvent(other_, fork, 0), CUDA_SUCCESS);
    ASSERT_EQ(run(other_, [counter] { *counter += 5; }), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuEventRecord(join, other_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamWaitEvent(stream_, join, 0), CUDA_SUCCESS);
    ASSERT_EQ(run(stream_, [counter] { counter[1] += *counter; }), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    ASSERT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamQuery(other_), CUDA_SUCCESS);  // no longer in the capture
    ASSERT_EQ(emu::cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuGraphDestroy(graph), CUDA_SUCCESS);
    unsigned out[2] = {};
    ASSERT_EQ(emu::cuMemcpyDtoH(out, memory.pointer, 8), CUDA_SUCCESS);
    EXPECT_EQ(out[1], 0u);  // captured, not run
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(emu::cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
    }
    ASSERT_EQ(emu::cuGraphExecDestroy(executable), CUDA_SUCCESS);  // queued launches still run
    EXPECT_EQ(emu::cuGraphExecDestroy(executable), CUDA_ERROR_INVALID_HANDLE);
    ASSERT_EQ(emu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuMemcpyDtoH(out, memory.pointer, 8), CUDA_SUCCESS);
    EXPECT_EQ(out[0], 15u);
    EXPECT_EQ(out[1], 45u);
    EXPECT_EQ(emu::cuEventDestroy(fork), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventDestroy(join), CUDA_SUCCESS);
}

TEST_F(Streams, SayWhatSpoilsACapture) {
    CUgraph graph = nullptr;
    CUevent event = new_event();
    const auto begin = [&] {
        ASSERT_EQ(emu::cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    };
    EXPECT_EQ(emu::cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);

    begin();  // the stream is synchronised during the capture
    EXPECT_EQ(emu::cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(run(stream_, [] {}), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(emu::cuStreamSynchronize(stream_), CUDA_SUCCESS);

    begin();  // a branch that is not joined
    ASSERT_EQ(emu::cuEventRecord(event, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamWaitEvent(other_, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(run(other_, [] {}), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    EXPECT_NE(emu::cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);

    begin();
    ASSERT_EQ(emu::cuEventRecord(event, stream_), CUDA_SUCCESS);
    ASSERT_EQ(emu::cuStreamWaitEvent(other_, event, 0), CUDA_SUCCESS);
    ASSERT_EQ(run(other_, [] {}), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

    ASSERT_EQ(emu::cuEventRecord(event, other_), CUDA_SUCCESS);
    begin();  // waits for an event outside the capture
    EXPECT_EQ(emu::cuStreamWaitEvent(stream_, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    EXPECT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    begin();  // another thread ends it
    std::thread([&] {
        EXPECT_EQ(emu::cuCtxSetCurrent(context_), CUDA_SUCCESS);
        EXPECT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    ASSERT_EQ(emu::cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuGraphDestroy(graph), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
}

TEST_F(Streams, BelongToAContext) {
    CUcontext mine = nullptr, popped = nullptr;
    CUstream stream = nullptr;
#if CUDA_VERSION >= 13000
    ASSERT_EQ(emu::cuCtxCreate(&mine, nullptr, 0, 1), CUDA_SUCCESS);
#else
    ASSERT_EQ(emu::cuCtxCreate(&mine, 0, 1), CUDA_SUCCESS);
#endif
    CUdevice device = -1;
    ASSERT_EQ(emu::cuCtxGetDevice(&device), CUDA_SUCCESS);
    EXPECT_EQ(device, 1);
    ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUevent event = new_event();
    EXPECT_EQ(emu::cuEventRecord(event, stream_),
              CUDA_ERROR_INVALID_HANDLE);  // of the other context
    EXPECT_EQ(emu::cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuStreamWaitEvent(stream_, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(emu::cuCtxDestroy(mine), CUDA_SUCCESS);  // its stream and event go with it
    EXPECT_EQ(emu::cuCtxDestroy(mine), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(emu::cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(emu::cuCtxSetCurrent(mine), CUDA_ERROR_INVALID_CONTEXT);
    ASSERT_EQ(emu::cuCtxGetCurrent(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context_);
}

TEST_F(Streams, CanBeUsedByManyThreads) {
    constexpr int kThreads = 6, kRounds = 30;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            ASSERT_EQ(emu::cuCtxSetCurrent(context_), CUDA_SUCCESS);
            CUstream stream = nullptr;
            CUdeviceptr memory = 0;
            CUevent event = new_event();
            ASSERT_EQ(emu::cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
            ASSERT_EQ(emu::cuMemAlloc(&memory, 400), CUDA_SUCCESS);
            for (unsigned round = 0; round < kRounds; ++round) {
                const unsigned in = round * 100 + t;
                unsigned out = 0;
                EXPECT_EQ(emu::cuMemsetD32Async(memory, in, 100, stream), CUDA_SUCCESS);
                EXPECT_EQ(emu::cuEventRecord(event, stream), CUDA_SUCCESS);
                EXPECT_EQ(emu::cuEventSynchronize(event), CUDA_SUCCESS);
                EXPECT_EQ(emu::cuMemcpyDtoH(&out, memory + 396, 4), CUDA_SUCCESS);
                EXPECT_EQ(out, in);
            }
            EXPECT_EQ(emu::cuStreamDestroy(stream), CUDA_SUCCESS);
            EXPECT_EQ(emu::cuMemFree(memory), CUDA_SUCCESS);
            EXPECT_EQ(emu::cuEventDestroy(event), CUDA_SUCCESS);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace
}  // namespace symm::emu
