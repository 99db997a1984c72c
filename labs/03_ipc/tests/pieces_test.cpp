// The smaller pieces: single handles, an array of one rank, dma-buf, the older handles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/handle_kind.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/memory_handle.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Handle, AFileDescriptorOfSomethingElseIsRefused) {
    const Device device(0);
    const UniqueFd nothing(::memfd_create("symm-test", MFD_CLOEXEC));
    EXPECT_THAT([&] { import_memory(nothing, 2 << 20); },
                ::testing::ThrowsMessage<CudaError>(HasSubstr("cuMemImportFromShareableHandle")));
    EXPECT_THROW(import_memory(UniqueFd(), 2 << 20), CudaError);
}

TEST(Handle, MemoryMadeWithoutHandlesCannotBeExported) {
    const Device device(0);
    const CUmemAllocationProp properties = device_memory(0, 0);
    const PhysicalMemory memory = PhysicalMemory::create(properties, granularity(properties));
    EXPECT_THAT([&] { export_fd(memory); },
                ::testing::ThrowsMessage<CudaError>(HasSubstr("cuMemExportToShareableHandle")));
}

TEST(Handle, TheFallbackFromFabricHasAReason) {
    run_as(RankMode::kThread, 3, [](Rank& rank) {
        const HandleChoice agreed = agree_on_handle_kind(rank);
        const auto kinds = rank.bootstrap().allgather("kind", agreed.kind);
        EXPECT_EQ(kinds, std::vector(3, agreed.kind));
        EXPECT_EQ(agreed.why_not_fabric.empty(), agreed.kind == CU_MEM_HANDLE_TYPE_FABRIC);
    });
}

// Only NOT_PERMITTED and NOT_SUPPORTED mean "no FABRIC here": any other error is thrown.
TEST(Handle, AFailingProbeIsNoFallback) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    run_as(RankMode::kThread, 1, [](Rank& rank) {
        for (const char* function : {"cuDeviceGet", "cuDeviceGetAttribute",
                                     "cuMemGetAllocationGranularity", "cuMemCreate"}) {
            expect_failure({function, 1}, [&] { agree_on_handle_kind(rank); });
        }
        EXPECT_NO_THROW(agree_on_handle_kind(rank));
    });
}

class ArrayIn : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, ArrayIn, ::testing::Values(RankMode::kThread, RankMode::kProcess),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(ArrayIn, IsTheSameMemoryOnEveryRank) {
    run_as(GetParam(), 4, [](Rank& rank) {
        const Gpu gpu(rank.device());
        for (const std::size_t words : {std::size_t{1}, std::size_t{4095}, std::size_t{600'007}}) {
            const int root = static_cast<int>(words % 4);
            const SharedArray array(rank, root, words * 4);
            const pattern::Range filled{array.base(), words, static_cast<std::uint32_t>(words)};
            if (rank.rank() == root) {
                pattern::fill(gpu, filled);
            }
            rank.bootstrap().barrier("filled");
            EXPECT_TRUE(pattern::compare(gpu, filled).right()) << rank.rank();
            rank.bootstrap().barrier("read");
        }
    });
}

TEST_P(ArrayIn, OutlivesTheRootsOwnView) {
    run_as(GetParam(), 2, [](Rank& rank) {
        auto array = std::make_unique<SharedArray>(rank, 0, 4096);
        const Gpu gpu(rank.device());
        if (rank.rank() == 0) {
            pattern::fill(gpu, {array->base(), 1024, 3});
            array.reset();
        }
        rank.bootstrap().barrier("the root has let go");
        if (rank.rank() == 1) {
            EXPECT_TRUE(pattern::compare(gpu, {array->base(), 1024, 3}).right());
        }
    });
}

TEST_P(ArrayIn, TheOlderHandlesDoWhatTheirPageSays) {
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
        pattern::fill(gpu, {range.local(), (1 << 20) / 4, 9});
        const std::string report = try_dma_buf(range.local(), range.stride());
        EXPECT_FALSE(report.empty());
        if (is_emulated()) {
            EXPECT_THAT(report, HasSubstr("bytes equal"));
        }
        if (report.starts_with("dma-buf")) {  // a wrong call is no refusal of the machine
            EXPECT_THAT([&] { try_dma_buf(range.local(), 5); },
                        ::testing::ThrowsMessage<CudaError>(
                            AllOf(HasSubstr("cuMemGetHandleForAddressRange"),
                                  HasSubstr("CUDA_ERROR_INVALID_VALUE"))));
        }
    });
}

}  // namespace
}  // namespace symm
