// The smaller pieces: single handles, sums, the ring, dma-buf, the older handles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/pattern/pattern.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/exported_handle.hpp"
#include "labs/03_ipc/imported_memory.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/ordered_sum.hpp"
#include "labs/03_ipc/ring.hpp"
#include "labs/03_ipc/shared_array.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Handle, AFileDescriptorOfSomethingElseIsRefused) {
    const Device device(0);
    const UniqueFd nothing(::memfd_create("symm-test", MFD_CLOEXEC));
    EXPECT_THAT([&] { import_fd(nothing, 2 << 20); },
                ::testing::ThrowsMessage<CudaError>(HasSubstr("cuMemImportFromShareableHandle")));
    EXPECT_THROW(import_fd(UniqueFd(), 2 << 20), CudaError);
}

TEST(Handle, MemoryMadeWithoutHandlesCannotBeExported) {
    const Device device(0);
    const CUmemAllocationProp properties = device_memory(0, 0);
    const PhysicalMemory memory = PhysicalMemory::create(properties, granularity(properties));
    EXPECT_THAT([&] { export_fd(memory); },
                ::testing::ThrowsMessage<CudaError>(HasSubstr("cuMemExportToShareableHandle")));
}

TEST(Handle, TheFallbackFromFabricHasAReason) {
    const Device device(0);
    const HandleChoice choice = probe_handle_kind(0);
    EXPECT_EQ(choice.why_not_fabric.empty(), choice.kind == CU_MEM_HANDLE_TYPE_FABRIC);
    run_as(RankMode::kThread, 3, [](Rank& rank) {
        const HandleChoice agreed = agree_on_handle_kind(rank);
        const auto kinds = rank.bootstrap().allgather("kind", agreed.kind);
        EXPECT_EQ(kinds, std::vector(3, agreed.kind));
        EXPECT_EQ(agreed.why_not_fabric.empty(), agreed.kind == CU_MEM_HANDLE_TYPE_FABRIC);
    });
}

// Only NOT_PERMITTED and NOT_SUPPORTED mean "no FABRIC here": what else goes wrong must be heard, and asked
// again the next time.
TEST(Handle, AFailingProbeIsNoFallback) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    const Device device(3);  // which no other case has asked about
    for (const char* function :
         {"cuDeviceGet", "cuDeviceGetAttribute", "cuMemGetAllocationGranularity", "cuMemCreate"}) {
        expect_failure({function, 1}, [] { probe_handle_kind(3); });
    }
    EXPECT_NO_THROW(probe_handle_kind(3));
}

TEST(Sum, TheExampleDependsOnTheOrder) {
    std::vector<double> values(100'001);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = sum_example(i);
    }
    const double simple = std::accumulate(values.begin(), values.end(), 0.0);
    const double ordered = ordered_sum(values);
    EXPECT_NE(simple, ordered) << "the test could not tell one order from another";
    EXPECT_NEAR(simple, ordered, 1e-6 * std::abs(simple));
}

class ArrayIn : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, ArrayIn, ::testing::Values(RankMode::kThread, RankMode::kProcess),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(ArrayIn, IsSummedEquallyByEveryRank) {
    run_as(GetParam(), 4, [](Rank& rank) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{4095}, std::size_t{300'007}}) {
            const int root = static_cast<int>(count % 4);
            const SharedArray array(rank, root, count * sizeof(double));
            std::vector<double> values(count);
            for (std::size_t i = 0; i < count; ++i) {
                values[i] = sum_example(i + count);
            }
            if (rank.rank() == root) {
                copy_to_device(array.base(), values.data(), count * sizeof(double));
            }
            rank.bootstrap().barrier("filled");
            const double sum = ordered_sum(Gpu(rank.device()), array.base(), count);
            const double expected = ordered_sum(values);
            EXPECT_EQ(std::memcmp(&sum, &expected, sizeof(sum)), 0) << sum << " " << expected;
            rank.bootstrap().barrier("summed");
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

TEST_P(ArrayIn, RingFindsEveryWordInItsPlace) {
    run_as(GetParam(), 5, [](Rank& rank) {
        const SymmetricRange range(rank, 4 * 4099);
        EXPECT_EQ(walk_ring(rank, range), 2u * 4099);
        EXPECT_EQ(walk_ring(rank, range), 2u * 4099);
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
        const DmaBufReport report = try_dma_buf(range.local(), range.stride());
        EXPECT_FALSE(report.text.empty());
        if (is_emulated()) {
            EXPECT_TRUE(report.mapped) << report.text;
        }
        if (report.exported) {  // a wrong call is no refusal of the machine
            EXPECT_THAT([&] { try_dma_buf(range.local(), 5); },
                        ::testing::ThrowsMessage<CudaError>(
                            AllOf(HasSubstr("cuMemGetHandleForAddressRange"),
                                  HasSubstr("CUDA_ERROR_INVALID_VALUE"))));
        }
    });
}

}  // namespace
}  // namespace symm
