// Every driver call that builds a symmetric range fails once: all ranks learn of it, and nothing is
// left behind. Many rounds that succeed leave nothing either.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/01_vmm_alloc/tests/lab_test.hpp"
#include "labs/03_ipc/dma_buf.hpp"
#include "labs/03_ipc/legacy_ipc.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/03_ipc/tests/fail_each_call.hpp"
#include "labs/03_ipc/tests/segments.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// More segments than three ranks exchange at once.
constexpr std::size_t kMoreThanABatch = 128 / 3 + 2;

std::shared_ptr<void> share_pieces(Rank& rank, std::size_t count) {
    std::unique_ptr<Segments> pieces;
    rank.bootstrap().together("pieces", [&] {
        pieces = std::make_unique<Segments>(rank.device(), std::vector<std::size_t>(count, 1));
    });
    return std::make_shared<SymmetricRange>(rank, pieces->base(), pieces->size());
}

const Path kRange{"a range",
                  [](Rank& rank) { return std::make_shared<SymmetricRange>(rank, 5000); }};
const Path kPieces{"a range of two segments", [](Rank& rank) { return share_pieces(rank, 2); }};
const Path kManyPieces{"a range of many segments",
                       [](Rank& rank) { return share_pieces(rank, kMoreThanABatch); }};
const Path kDmaBuf{"a dma-buf", [](Rank& rank) {
                       auto range = std::make_shared<SymmetricRange>(rank, 5000);
                       rank.bootstrap().together(
                           "dma-buf", [&] { try_dma_buf(range->local(), range->stride()); });
                       return range;
                   }};

TEST(RangeFailures, OfThreadsLeaveNothing) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        for (const Path& path : {kRange, kPieces}) {
            fail_each_call(rank, 1, path);
        }
    });
}

TEST(RangeFailures, OfProcessesLeaveNothing) {
    SYMM_NEEDS(is_emulated());
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        for (const int failing : {0, 2}) {  // the root, and one that is not
            for (const Path& path : {kRange, kPieces, kDmaBuf}) {
                fail_each_call(rank, failing, path);
            }
            fail_each_call(rank, failing, kManyPieces, 7);
        }
    });
}

// The older handles, whose owner waits in kernels too: each function's first call.
TEST(RangeFailures, OfTheOlderHandlesLeaveNothing) {
    SYMM_NEEDS(is_emulated());
    for (const char* function : {"cuIpcGetMemHandle", "cuMemAlloc", "cuStreamCreate",
                                 "cuLaunchKernel", "cuStreamQuery", "cuIpcOpenMemHandle"}) {
        const std::string failing = told_to_ranks("SYMM_TEST_FUNCTION", function);
        const std::string error =
            error_of(ranks_of_this_test(2, RankMode::kProcess), [&](Rank& rank) {
                const SymmetricRange range(rank, 4096);
                const emu::Inventory before = emu::inventory();
                if (rank.rank() == 1) {
                    emu::fail_call(failing, 1, kInjected);
                }
                try {
                    walk_legacy_ipc(rank, range.local());
                } catch (const std::exception& failure) {
                    EXPECT_EQ(emu::inventory(), before) << failing;
                    throw;
                }
            });
        if (is_rank_process()) {
            return;
        }
        EXPECT_THAT(error, AllOf(HasSubstr("rank 1 failed"), HasSubstr(function),
                                 HasSubstr(name_of(kInjected))));
    }
}

// A rank, the root or another, killed in any driver call that builds a range: the others name it,
// and end at once.
TEST(RangeFailures, ARankKilledInAnyCallIsNamedByTheOthers) {
    SYMM_NEEDS(is_emulated());  // only the emulated driver kills on demand
    for (const char* rank_and_call :
         {"0:cuDeviceGetAttribute:1", "1:cuMemGetAllocationGranularity:1", "0:cuMemCreate:1",
          "1:cuMemCreate:2", "0:cuDeviceCanAccessPeer:1", "1:cuMemAddressReserve:1",
          "0:cuMemExportToShareableHandle:1", "1:cuMemImportFromShareableHandle:1",
          "0:cuMemImportFromShareableHandle:2", "1:cuMemMap:1", "0:cuMemMap:3",
          "1:cuMemSetAccess:1", "0:cuMemSetAccess:3", "1:cuMemUnmap:1", "0:cuMemRelease:1"}) {
        const std::string fatal = told_to_ranks("SYMM_TEST_CALL", rank_and_call);
        const int victim = fatal.front() - '0';
        const auto start = std::chrono::steady_clock::now();
        const std::string error =
            error_of(ranks_of_this_test(3, RankMode::kProcess), [&](Rank& rank) {
                const pid_t lost = rank.process_of(victim);
                if (rank.rank() == victim) {
                    const std::size_t colon = fatal.rfind(':');
                    emu::fail_call(fatal.substr(2, colon - 2), std::stol(fatal.substr(colon + 1)),
                                   emu::kKilled);
                }
                try {
                    { const SymmetricRange range(rank, 4096); }
                    rank.bootstrap().barrier("built");
                    ADD_FAILURE() << "rank " << rank.rank() << " went on without rank " << victim;
                } catch (const BootstrapError& apart) {
                    EXPECT_THAT(apart.what(),
                                HasSubstr(fmt::format("rank {} (pid {})", victim, lost)))
                        << fatal;
                    EXPECT_EQ(apart.rank(), victim) << fatal;
                }
            });
        if (is_rank_process()) {
            return;
        }
        EXPECT_THAT(error,
                    AllOf(HasSubstr(fmt::format("rank {} (pid", victim)), HasSubstr("signal 9")))
            << fatal;
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << fatal;
    }
}

class RangeRounds : public ::testing::TestWithParam<RankMode> {};
INSTANTIATE_TEST_SUITE_P(Mode, RangeRounds, ::testing::ValuesIn(kModes), name_of_mode);

TEST_P(RangeRounds, LeaveNothing) {
    SYMM_NEEDS(is_emulated());                   // only the emulated driver counts
    const int rounds = kSanitized ? 100 : 1000;  // slower under a sanitizer
    run_as(GetParam(), 8, [&](Rank& rank) {
        { const SymmetricRange first(rank, 4096); }
        rank.bootstrap().barrier("start");
        const emu::Inventory before = emu::inventory();
        const int descriptors = open_descriptors();
        rank.bootstrap().barrier("counted");
        for (int round = 0; round < rounds; ++round) {
            const SymmetricRange range(rank, static_cast<std::size_t>(1 + round * 17));
        }
        expect_nothing_left(rank, before, "the rounds");
        EXPECT_EQ(open_descriptors(), descriptors);
        rank.bootstrap().barrier("end");
    });
}

}  // namespace
}  // namespace symm
