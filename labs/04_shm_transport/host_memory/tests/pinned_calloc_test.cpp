// pinned_calloc while streams are captured: by this thread, or by another one in mode GLOBAL.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/stream.hpp"
#include "labs/04_shm_transport/host_memory/pinned_calloc.hpp"

namespace symm {
namespace {

class PinnedCalloc : public ::testing::TestWithParam<CUstreamCaptureMode> {
protected:
    void begin() { cu_check(cuStreamBeginCapture(stream_.get(), GetParam()), "begin"); }
    // Ends the capture: an error if it was lost.
    CUresult end() {
        CUgraph graph = nullptr;
        const CUresult result = cuStreamEndCapture(stream_.get(), &graph);
        if (graph != nullptr) {
            EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
        }
        return result;
    }
    static void expect_zeros(const PinnedMemory& memory, std::size_t bytes) {
        const auto* first = memory.as<unsigned char>();
        EXPECT_EQ(std::count(first, first + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
    }

    Device device_{0};
    Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Modes, PinnedCalloc,
                         ::testing::Values(CU_STREAM_CAPTURE_MODE_GLOBAL,
                                           CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));

TEST_P(PinnedCalloc, LeavesTheCaptureOfItsThreadAlone) {
    begin();
    const PinnedMemory memory = pinned_calloc(70'001);
    expect_zeros(memory, 70'001);
    EXPECT_EQ(end(), CUDA_SUCCESS);
}

TEST_P(PinnedCalloc, LeavesTheCaptureOfAnotherThreadAlone) {
    begin();
    std::optional<PinnedMemory> memory;
    std::thread([&] {
        device_.make_current();
        EXPECT_NO_THROW(memory = pinned_calloc(64));
    }).join();
    ASSERT_TRUE(memory.has_value());
    expect_zeros(*memory, 64);
    EXPECT_EQ(end(), CUDA_SUCCESS);
}

TEST_P(PinnedCalloc, BringsBackTheModeOfTheThread) {
    begin();
    const PinnedMemory memory = pinned_calloc(64);
    void* refused = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&refused, 64, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// No machine has 2^60 bytes. The lower 32 bits of the size alone would be 64 bytes.
TEST(ModeOfAThread, IsAsBeforePinnedCalloc) {
    const Device device(0);
    for (const CUstreamCaptureMode before :
         {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
          CU_STREAM_CAPTURE_MODE_RELAXED}) {
        CUstreamCaptureMode mode = before;
        const auto exchange = [&] {
            EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
        };
        exchange();
        static_cast<void>(pinned_calloc(64));
        exchange();
        ASSERT_EQ(mode, before) << "after an allocation";
        exchange();
        EXPECT_THROW(static_cast<void>(pinned_calloc((std::size_t{1} << 60) + 64)), CudaError);
        exchange();
        ASSERT_EQ(mode, before) << "after an allocation that failed";
    }
}

}  // namespace
}  // namespace symm
