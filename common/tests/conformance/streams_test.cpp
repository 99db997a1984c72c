// Streams and events.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

// Two streams, an event of each kind and a little memory.
class Streams : public Driver {
protected:
    static constexpr std::size_t kBytes = std::size_t{1} << 20;

    void SetUp() override {
        Driver::SetUp();
        ASSERT_OK(cuStreamCreate(&first_, CU_STREAM_NON_BLOCKING));
        ASSERT_OK(cuStreamCreate(&second_, CU_STREAM_NON_BLOCKING));
        ASSERT_OK(cuEventCreate(&timed_, CU_EVENT_DEFAULT));
        ASSERT_OK(cuEventCreate(&untimed_, CU_EVENT_DISABLE_TIMING));
        ASSERT_OK(cuMemAlloc(&memory_, kBytes));
        ASSERT_OK(cuMemAlloc(&copy_, kBytes));
    }
    void TearDown() override {
        EXPECT_OK(cuStreamSynchronize(first_));
        EXPECT_OK(cuStreamSynchronize(second_));
        EXPECT_OK(cuMemFree(copy_));
        EXPECT_OK(cuMemFree(memory_));
        EXPECT_OK(cuEventDestroy(untimed_));
        EXPECT_OK(cuEventDestroy(timed_));
        EXPECT_OK(cuStreamDestroy(second_));
        EXPECT_OK(cuStreamDestroy(first_));
        Driver::TearDown();
    }

    CUstream first_ = nullptr;
    CUstream second_ = nullptr;
    CUevent timed_ = nullptr;
    CUevent untimed_ = nullptr;
    CUdeviceptr memory_ = 0;
    CUdeviceptr copy_ = 0;
};
using Events = Streams;

TEST_F(Streams, AreMadeAndDestroyed) {
    CUstream stream = nullptr;
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_NE(stream, nullptr);
    EXPECT_OK(cuStreamDestroy(stream));
}

TEST_F(Streams, KnowNoOtherFlags) {
    CUstream stream = nullptr;
    EXPECT_RESULT(cuStreamCreate(&stream, 0x40), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, NeedSomewhereToGo) {
    EXPECT_RESULT(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, WithoutWorkAreDone) {
    EXPECT_OK(cuStreamQuery(first_));
    EXPECT_OK(cuStreamSynchronize(first_));
}

TEST_F(Streams, TheDefaultOnesAlwaysExist) {
    for (const CUstream stream : {CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
        EXPECT_OK(cuStreamQuery(stream));
        EXPECT_OK(cuStreamSynchronize(stream));
    }
}

// In each thread CU_STREAM_PER_THREAD names another stream: one that waits does not hold up the
// other thread's.
TEST_F(Streams, EachThreadHasADefaultOne) {
    EXPECT_OK(cuMemsetD8Async(memory_, 6, kBytes, CU_STREAM_PER_THREAD));
    CUcontext context = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&context));
    std::thread([&] {
        EXPECT_OK(cuCtxSetCurrent(context));
        EXPECT_OK(cuMemsetD8Async(copy_, 7, kBytes, CU_STREAM_PER_THREAD));
        EXPECT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        EXPECT_EQ(read_bytes(copy_, 1)[0], 7);
    }).join();
    EXPECT_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    EXPECT_EQ(read_bytes(memory_, 1)[0], 6);
}

TEST_F(Streams, SynchroniseWaitsForTheWork) {
    for (unsigned char value = 1; value < 30; ++value) {
        EXPECT_OK(cuMemsetD8Async(memory_, value, kBytes, first_));
        EXPECT_OK(cuStreamSynchronize(first_));
        EXPECT_OK(cuStreamQuery(first_));
        EXPECT_EQ(read_bytes(memory_ + kBytes - 1, 1)[0], value);
    }
}

TEST_F(Streams, QueryAnswersDoneOrNotReady) {
    EXPECT_OK(cuMemsetD8Async(memory_, 3, kBytes, first_));
    EXPECT_RESULT(cuStreamQuery(first_), CUDA_SUCCESS, CUDA_ERROR_NOT_READY);
    EXPECT_OK(cuStreamSynchronize(first_));
    EXPECT_OK(cuStreamQuery(first_));
}

TEST_F(Streams, TheContextWaitsForAllOfThem) {
    EXPECT_OK(cuMemsetD8Async(memory_, 4, kBytes, first_));
    EXPECT_OK(cuMemsetD8Async(copy_, 5, kBytes, second_));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuStreamQuery(first_));
    EXPECT_OK(cuStreamQuery(second_));
    EXPECT_EQ(read_bytes(memory_, 1)[0], 4);
    EXPECT_EQ(read_bytes(copy_, 1)[0], 5);
}

TEST_F(Streams, DestroyedWithWorkFinishIt) {
    CUstream stream = nullptr;
    ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_OK(cuMemsetD8Async(memory_, 6, kBytes, stream));
    EXPECT_OK(cuStreamDestroy(stream));
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_EQ(read_bytes(memory_ + kBytes - 1, 1)[0], 6);
}

TEST_F(Streams, ServeSeveralThreads) {
    std::vector<CUresult> results(4, CUDA_ERROR_UNKNOWN);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&, i] {
            results[i] = cuCtxSetCurrent(primary_context());
            for (int round = 0; round < 20 && results[i] == CUDA_SUCCESS; ++round) {
                results[i] = cuMemsetD8Async(memory_ + i * 4096, static_cast<unsigned char>(i),
                                             4096, first_);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_OK(results[i]);
    }
    EXPECT_OK(cuStreamSynchronize(first_));
    EXPECT_EQ(read_bytes(memory_ + 3 * 4096, 1)[0], 3);
}

TEST_F(Events, KnowNoOtherFlags) {
    CUevent event = nullptr;
    EXPECT_RESULT(cuEventCreate(&event, 0x80), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Events, NeedSomewhereToGo) {
    EXPECT_RESULT(cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Events, NeverRecordedHaveHappened) {
    EXPECT_OK(cuEventQuery(timed_));
    EXPECT_OK(cuEventSynchronize(timed_));
}

TEST_F(Events, NeverRecordedHoldNothingBack) {
    EXPECT_OK(cuStreamWaitEvent(first_, timed_, 0));
    EXPECT_OK(cuStreamSynchronize(first_));
}

TEST_F(Events, HappenWhenTheWorkBeforeThemIsDone) {
    EXPECT_OK(cuMemsetD8Async(memory_, 7, kBytes, first_));
    EXPECT_OK(cuEventRecord(untimed_, first_));
    EXPECT_OK(cuEventSynchronize(untimed_));
    EXPECT_OK(cuEventQuery(untimed_));
    EXPECT_EQ(read_bytes(memory_ + kBytes - 1, 1)[0], 7);
}

TEST_F(Events, OrderTwoStreams) {
    for (unsigned char value = 1; value < 30; ++value) {
        EXPECT_OK(cuMemsetD8Async(memory_, value, kBytes, first_));
        EXPECT_OK(cuEventRecord(untimed_, first_));
        EXPECT_OK(cuStreamWaitEvent(second_, untimed_, 0));
        EXPECT_OK(cuMemcpyAsync(copy_, memory_, kBytes, second_));
        EXPECT_OK(cuStreamSynchronize(second_));
        EXPECT_EQ(read_bytes(copy_ + kBytes - 1, 1)[0], value);
    }
}

TEST_F(Events, AWaitIsForTheRecordBeforeIt) {
    EXPECT_OK(cuEventRecord(untimed_, first_));
    EXPECT_OK(cuStreamWaitEvent(second_, untimed_, 0));
    EXPECT_OK(cuEventRecord(untimed_, second_));  // the wait above is not for this one
    EXPECT_OK(cuStreamSynchronize(second_));
    EXPECT_OK(cuEventQuery(untimed_));
}

TEST_F(Events, MeasureTime) {
    CUevent end = nullptr;
    ASSERT_OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    EXPECT_OK(cuEventRecord(timed_, first_));
    EXPECT_OK(cuMemsetD8Async(memory_, 1, kBytes, first_));
    EXPECT_OK(cuEventRecord(end, first_));
    EXPECT_OK(cuEventSynchronize(end));
    float milliseconds = -1;
    EXPECT_OK(cuEventElapsedTime(&milliseconds, timed_, end));
    EXPECT_GE(milliseconds, 0.0f);
    EXPECT_LT(milliseconds, 60000.0f);
    EXPECT_OK(cuEventDestroy(end));
}

TEST_F(Events, TimeRunsFromWhatWasRecorded) {
    float milliseconds = 0;
    EXPECT_RESULT(cuEventElapsedTime(&milliseconds, timed_, timed_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Events, WithoutTimingHaveNoTime) {
    EXPECT_OK(cuEventRecord(timed_, first_));
    EXPECT_OK(cuEventRecord(untimed_, first_));
    EXPECT_OK(cuStreamSynchronize(first_));
    float milliseconds = 0;
    EXPECT_RESULT(cuEventElapsedTime(&milliseconds, timed_, untimed_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Events, AWaitKnowsNoOtherFlags) {
    EXPECT_RESULT(cuStreamWaitEvent(first_, timed_, 0x80), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Events, NullIsNoEvent) {
    EXPECT_RESULT(cuEventRecord(nullptr, first_), CUDA_ERROR_INVALID_HANDLE,
                  CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuEventQuery(nullptr), CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuEventSynchronize(nullptr), CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuStreamWaitEvent(first_, nullptr, 0), CUDA_ERROR_INVALID_HANDLE,
                  CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
