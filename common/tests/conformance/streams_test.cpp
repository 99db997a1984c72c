// Streams and events.

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

// Two streams, an event of each kind and a little memory.
class Streams : public Driver {
protected:
    static constexpr std::size_t kBytes = std::size_t{1} << 20;

    ~Streams() override { EXPECT_OK(cuCtxSynchronize()); }

    void fill(CUdeviceptr to, unsigned char value, CUstream stream) {
        EXPECT_OK(cuMemsetD8Async(to, value, kBytes, stream));
    }
    // The last byte.
    static unsigned char last_of(CUdeviceptr memory) {
        return read_bytes(memory + kBytes - 1, 1)[0];
    }

    Allocation memory_{kBytes};
    Allocation copy_{kBytes};
    Event timed_;
    Event untimed_{CU_EVENT_DISABLE_TIMING};
    Stream first_;
    Stream second_;
};
using Events = Streams;

TEST_F(Streams, AndEventsKnowNoOtherFlagsAndNeedSomewhereToGo) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    EXPECT_INVALID(cuStreamCreate(&stream, 0x40));
    EXPECT_INVALID(cuStreamCreate(nullptr, 0));
    EXPECT_INVALID(cuEventCreate(&event, 0x80));
    EXPECT_INVALID(cuEventCreate(nullptr, 0));
    EXPECT_INVALID(cuStreamWaitEvent(first_, timed_, 0x80));
}

TEST_F(Streams, WithoutWorkAreDone) {
    for (const CUstream stream :
         {first_.stream, CUstream{}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
        EXPECT_OK(cuStreamQuery(stream));
        EXPECT_OK(cuStreamSynchronize(stream));
    }
}

TEST_F(Streams, SynchroniseWaitsForTheWork) {
    for (unsigned char value = 1; value < 30; ++value) {
        fill(memory_.base, value, first_);
        EXPECT_RESULT(cuStreamQuery(first_), CUDA_SUCCESS, CUDA_ERROR_NOT_READY);
        EXPECT_OK(cuStreamSynchronize(first_));
        EXPECT_OK(cuStreamQuery(first_));
        EXPECT_EQ(last_of(memory_.base), value);
    }
}

TEST_F(Streams, TheContextWaitsForAllOfThem) {
    fill(memory_.base, 4, first_);
    {
        Stream stream;  // destroyed with work, it finishes it
        fill(copy_.base, 5, stream);
    }
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuStreamQuery(first_));
    EXPECT_EQ(last_of(memory_.base), 4);
    EXPECT_EQ(last_of(copy_.base), 5);
}

TEST_F(Events, NeverRecordedHaveHappened) {
    EXPECT_OK(cuEventQuery(timed_));
    EXPECT_OK(cuEventSynchronize(timed_));
    EXPECT_OK(cuStreamWaitEvent(first_, timed_, 0));
    EXPECT_OK(cuStreamSynchronize(first_));
}

TEST_F(Events, OrderTwoStreams) {
    for (unsigned char value = 1; value < 30; ++value) {
        fill(memory_.base, value, first_);
        EXPECT_OK(cuEventRecord(untimed_, first_));
        EXPECT_OK(cuStreamWaitEvent(second_, untimed_, 0));
        EXPECT_OK(cuMemcpyAsync(copy_.base, memory_.base, kBytes, second_));
        EXPECT_OK(cuStreamSynchronize(second_));
        EXPECT_EQ(last_of(copy_.base), value);
    }
}

TEST_F(Events, AWaitIsForTheRecordBeforeIt) {
    EXPECT_OK(cuEventRecord(untimed_, first_));
    EXPECT_OK(cuStreamWaitEvent(second_, untimed_, 0));
    EXPECT_OK(cuEventRecord(untimed_, second_));  // the wait above is not for this one
    EXPECT_OK(cuStreamSynchronize(second_));
    EXPECT_OK(cuEventQuery(untimed_));
}

TEST_F(Events, MeasureTimeBetweenRecords) {
    Event end;
    float milliseconds = -1;
    EXPECT_RESULT(cuEventElapsedTime(&milliseconds, timed_, end), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_OK(cuEventRecord(timed_, first_));
    fill(memory_.base, 1, first_);
    EXPECT_OK(cuEventRecord(end, first_));
    EXPECT_OK(cuEventRecord(untimed_, first_));
    EXPECT_OK(cuEventSynchronize(end));
    EXPECT_OK(cuEventElapsedTime(&milliseconds, timed_, end));
    EXPECT_GE(milliseconds, 0.0f);
    EXPECT_LT(milliseconds, 60000.0f);
    EXPECT_OK(cuStreamSynchronize(first_));
    EXPECT_RESULT(cuEventElapsedTime(&milliseconds, timed_, untimed_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Events, NullIsNone) {
    for (const CUresult result :
         {cuEventRecord(nullptr, first_), cuEventQuery(nullptr), cuEventSynchronize(nullptr),
          cuStreamWaitEvent(first_, nullptr, 0)}) {
        EXPECT_RESULT(result, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
    }
}

}  // namespace
}  // namespace symm::conformance
