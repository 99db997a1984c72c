// Single handles, the kind that the ranks choose, and the array of one rank.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/sys/environment.hpp"
#include "common/test_pattern/test_pattern.hpp"
#include "common/tests/meet.hpp"
#include "common/tests/run_as.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/02_access/access.hpp"
#include "labs/03_ipc/handle_kind.hpp"
#include "labs/03_ipc/memory_handle.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/tests/segments.hpp"

namespace symm {
namespace {

using namespace testing;
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

// Only NOT_PERMITTED and NOT_SUPPORTED mean "no FABRIC here": any other error is thrown, on all
// ranks.
TEST(Handle, AFailingProbeIsNoFallback) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        for (const char* function : {"cuDeviceGet", "cuDeviceGetAttribute",
                                     "cuMemGetAllocationGranularity", "cuMemCreate"}) {
            if (rank.rank() == 1) {
                expect_failure({function, 1}, [&] { agree_on_handle_kind(rank); });
            } else {
                EXPECT_THAT([&] { agree_on_handle_kind(rank); },
                            ::testing::ThrowsMessage<std::exception>(HasSubstr(function)))
                    << "rank 0 when it fails on rank 1";
            }
        }
        EXPECT_NO_THROW(agree_on_handle_kind(rank));
    });
}

// With SYMM_EMU_FABRIC=1: all ranks have FABRIC handles, or all but one.
TEST(Handle, OneRankWithoutFabricDecidesForAll) {
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        const bool all_have_it = is_emulated() && env::number("SYMM_EMU_FABRIC") == 1;
        if (all_have_it) {
            EXPECT_EQ(agree_on_handle_kind(rank).kind, CU_MEM_HANDLE_TYPE_FABRIC)
                << "rank " << rank.rank() << " has FABRIC, as all ranks have";
        }
        const std::vector<std::vector<int>> cases{{1}, {0}, {2}, {1, 2}};
        for (const std::vector<int>& without : cases) {
            if (std::count(without.begin(), without.end(), rank.rank()) != 0) {
                ::setenv("SYMM_FABRIC_ENABLE", "0", 1);
            }
            const HandleChoice choice = agree_on_handle_kind(rank);
            EXPECT_EQ(choice.kind, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                << "rank " << rank.rank() << " chose FABRIC, and rank " << without[0]
                << " has none";
            if (all_have_it) {
                EXPECT_THAT(choice.why_not_fabric,
                            HasSubstr(fmt::format("rank {}: SYMM_FABRIC", without[0])))
                    << "the reason that rank " << rank.rank() << " gives";
            }
            ::unsetenv("SYMM_FABRIC_ENABLE");
            rank.bootstrap().barrier("chosen");
        }
        if (all_have_it) {  // no variable, but the driver refuses it to one rank
            if (rank.rank() == 1) {
                emu::fail_call("cuMemCreate", 1, CUDA_ERROR_NOT_PERMITTED);
            }
            const HandleChoice choice = agree_on_handle_kind(rank);
            EXPECT_EQ(choice.kind, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                << "rank " << rank.rank() << " has FABRIC, and rank 1's driver refuses it";
            EXPECT_THAT(choice.why_not_fabric, HasSubstr("rank 1: cuMemCreate"));
            emu::clear_failures();
        }
    });
}

class ArrayIn : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, ArrayIn, ::testing::ValuesIn(kModes), name_of_mode);

TEST_P(ArrayIn, IsTheSameMemoryOnEveryRank) {
    run_as(GetParam(), 5, [](Rank& rank) {  // on four emulated devices: rank 4 has device 0
        const Gpu gpu(rank.device());
        for (const std::size_t words : {1UL, 4UL, 4095UL, 600'007UL}) {
            const int root = static_cast<int>(words % 5);
            const SharedArray array(rank, root, words * 4);
            const test_pattern::Range filled{array.base(), words,
                                             static_cast<std::uint32_t>(words)};
            if (rank.rank() == root) {
                test_pattern::fill(gpu, filled);
            }
            rank.bootstrap().barrier("filled");
            EXPECT_TRUE(test_pattern::compare(gpu, filled).right()) << rank.rank();
            EXPECT_EQ(PhysicalMemory::mapped_at(array.base()).properties().location.id,
                      rank.device_of(root))
                << "the memory is of another device than the root's";
            EXPECT_EQ(access_of(array.base(), rank.device()), CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                << "rank " << rank.rank() << " may not read and write";
            rank.bootstrap().barrier("read");
        }
    });
}

TEST_P(ArrayIn, OutlivesTheRootsOwnView) {
    run_as(GetParam(), 2, [](Rank& rank) {
        auto array = std::make_unique<SharedArray>(rank, 0, 4096);
        const Gpu gpu(rank.device());
        if (rank.rank() == 0) {
            test_pattern::fill(gpu, {array->base(), 1024, 3});
            array.reset();
        }
        rank.bootstrap().barrier("the root has released it");
        if (rank.rank() == 1) {
            EXPECT_TRUE(test_pattern::compare(gpu, {array->base(), 1024, 3}).right());
        }
    });
}

TEST_P(ArrayIn, HasTheSizeOfTheRootsMemory) {
    SYMM_NEEDS(is_emulated() && device_count() >= 2);
    const LargeGranules of_device_1;
    run_as(GetParam(), 3, [](Rank& rank) {
        const SharedArray array(rank, 1, 100);
        EXPECT_EQ(PhysicalMemory::mapped_at(array.base()).size(), granularity(device_memory(1)))
            << "rank " << rank.rank() << "'s mapping, and the size of the root's memory";
    });
}

// A call fails on one rank: both ranks throw its error, nothing is left, and they can go on.
TEST(SharedArray, FailsOnAllRanksAndLeavesNothing) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 2, [](Rank& rank) {
        { const SharedArray first(rank, 0, 5000); }
        const emu::Inventory before = emu::inventory();
        const int descriptors = open_descriptors();
        for (const auto& [function, failing, root] :
             {std::tuple("cuMemCreate", 0, 0), std::tuple("cuMemExportToShareableHandle", 0, 0),
              std::tuple("cuMemImportFromShareableHandle", 1, 0),
              std::tuple("cuMemAddressReserve", 0, 0), std::tuple("cuMemAddressReserve", 1, 0),
              std::tuple("cuMemMap", 0, 0), std::tuple("cuMemMap", 1, 0),
              std::tuple("cuMemSetAccess", 0, 0), std::tuple("cuMemSetAccess", 1, 0),
              std::tuple("cuDeviceCanAccessPeer", 1, 0),
              std::tuple("cuDeviceCanAccessPeer", 0, 1)}) {
            if (rank.rank() == failing) {
                emu::fail_call(function, 1, kInjected);
            }
            EXPECT_THAT(([&, root = root] { SharedArray(rank, root, 5000); }),
                        ::testing::ThrowsMessage<std::exception>(HasSubstr(function)))
                << "rank " << rank.rank() << " when it fails on rank " << failing;
            emu::clear_failures();
            rank.bootstrap().barrier(fmt::format("after {}", function));
            EXPECT_EQ(emu::inventory(), before) << function;
            EXPECT_EQ(open_descriptors(), descriptors) << function;
        }
        EXPECT_THAT([&] { SharedArray(rank, 1, (std::size_t{1} << 32) + 1); },
                    ::testing::ThrowsMessage<std::exception>(HasSubstr("cuMemCreate(size=42970")))
            << "no device has that much";
        if (rank.rank() == 1) {
            emu::fail_call("cuMemCreate", 1, kInjected);
        }
        EXPECT_NO_THROW(SharedArray(rank, 0, 5000)) << "the root alone creates memory";
        emu::clear_failures();
        EXPECT_EQ(emu::inventory(), before);
        EXPECT_EQ(open_descriptors(), descriptors);
    });
}

}  // namespace
}  // namespace symm
