// The smaller pieces: dma-buf and the older handles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "common/tests/run_as.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/03_ipc/tests/segments.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OlderHandlesIn : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, OlderHandlesIn, ::testing::ValuesIn(kModes), name_of_mode);

TEST_P(OlderHandlesIn, DoWhatTheirPageSays) {
    run_as(GetParam(), 2, [](Rank& rank) {
        const SymmetricRange range(rank, 4096);
        const std::string story = walk_legacy_ipc(rank, range.local());
        EXPECT_THAT(story, HasSubstr("memory of cuMemCreate: CUDA_ERROR_INVALID_VALUE\n"));
        EXPECT_THAT(story, HasSubstr(rank.is_thread() ? "same process: CUDA_ERROR_INVALID_CONTEXT\n"
                                                      : "all 16384 words right\n"));
    });
}

TEST(DmaBuf, HoldsWhatTheGpuWroteWhereTheHostMayMapIt) {
    run_as(RankMode::kThread, 1, [](Rank& rank) {
        const SymmetricRange range(rank, 1 << 20);
        const Gpu gpu(rank.device());
        test_pattern::fill(gpu, {range.local(), (1 << 20) / 4, 9});
        const std::string report = try_dma_buf(range.local(), range.stride());
        EXPECT_FALSE(report.empty());
        if (is_emulated()) {
            EXPECT_THAT(report, HasSubstr("bytes equal"));
        }
        if (report.starts_with("dma-buf")) {  // a wrong call is an error, not a refusal
            EXPECT_THAT([&] { try_dma_buf(range.local(), 5); },
                        ::testing::ThrowsMessage<CudaError>(
                            AllOf(HasSubstr("cuMemGetHandleForAddressRange"),
                                  HasSubstr("CUDA_ERROR_INVALID_VALUE"))));
        }
    });
}

}  // namespace
}  // namespace symm
