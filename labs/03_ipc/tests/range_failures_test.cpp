// Every call that building a symmetric range makes is made to fail, one after another: all ranks
// learn of it and nothing is left. And nothing is left of many rounds that succeed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "labs/03_ipc/shared_array.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/03_ipc/tests/meet.hpp"
#include "labs/03_ipc/tests/run_as.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

void expect_nothing_left(Rank& rank, const emu::Inventory& before, const std::string& after_what) {
    rank.rendezvous().barrier("let go");  // threads share one driver: all have let go by now
    const emu::Inventory after = emu::inventory();
    EXPECT_EQ(after, before) << after_what << " left on rank " << rank.rank() << ": "
                             << describe(after) << "; before: " << describe(before);
    rank.rendezvous().barrier("looked");
}

using Path = std::function<void(Rank&)>;

void build_range(Rank& rank) {
    const SymmetricRange range(rank, 5000);
}
void build_array(Rank& rank) {
    const SharedArray array(rank, 1, 5000);
}

// Lets call k of a function fail on one rank, for all k that a path needs. Returns how many there
// were.
int fail_each_call(Rank& rank, const char* function, const Path& path) {
    int failures = 0;
    rank.rendezvous().barrier("start");
    const emu::Inventory before = emu::inventory();
    rank.rendezvous().barrier("counted");
    for (int k = 1;; ++k) {
        if (rank.rank() == 1) {
            emu::fail_call(function, k, CUDA_ERROR_OUT_OF_MEMORY);
        }
        rank.rendezvous().barrier("armed");
        std::string error;
        try {
            path(rank);
        } catch (const std::exception& failure) {
            error = failure.what();
        }
        rank.rendezvous().barrier("tried");
        if (rank.rank() == 1) {
            emu::clear_failures();
        }
        expect_nothing_left(rank, before, fmt::format("call {} of {}", k, function));
        const auto errors = rank.rendezvous().allgather_text("errors", error);
        for (const std::string& one : errors) {
            EXPECT_EQ(one.empty(), error.empty()) << "all ranks fail, or none";
        }
        if (error.empty()) {
            return failures;
        }
        ++failures;
        EXPECT_THAT(error, HasSubstr(function));
        EXPECT_THAT(error, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    }
}

TEST(RangeFailures, OfThreadsLeaveNothing) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        for (const char* function :
             {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
              "cuMemSetAccess", "cuDeviceCanAccessPeer"}) {
            EXPECT_GT(fail_each_call(rank, function, build_range), 0) << function;
        }
    });
}

TEST(RangeFailures, OfProcessesLeaveNothing) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    run_as(RankMode::kProcess, 3, [](Rank& rank) {
        build_range(rank);  // what is remembered from a first time on
        const int descriptors = open_descriptors();
        for (const char* function :
             {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
              "cuMemSetAccess", "cuDeviceCanAccessPeer", "cuMemExportToShareableHandle",
              "cuMemImportFromShareableHandle"}) {
            EXPECT_GT(fail_each_call(rank, function, build_range), 0) << function;
        }
        for (const char* function :
             {"cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
              "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"}) {
            const bool is_importers =
                std::string_view(function) == "cuMemImportFromShareableHandle";
            EXPECT_EQ(fail_each_call(rank, function, build_array) > 0, !is_importers) << function;
        }
        EXPECT_EQ(open_descriptors(), descriptors);
    });
}

// A sanitizer takes its time.
constexpr int kRounds = std::string_view(SYMM_SANITIZE).empty() ? 1000 : 100;

TEST(RangeRounds, OfThreadsLeaveNothing) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver counts";
    }
    run_as(RankMode::kThread, 8, [](Rank& rank) {
        rank.rendezvous().barrier("start");
        const emu::Inventory before = emu::inventory();
        const int descriptors = open_descriptors();
        rank.rendezvous().barrier("counted");
        for (int round = 0; round < kRounds; ++round) {
            const SymmetricRange range(rank, static_cast<std::size_t>(1 + round * 17));
        }
        expect_nothing_left(rank, before, "the rounds");
        EXPECT_EQ(open_descriptors(), descriptors);
        rank.rendezvous().barrier("end");
    });
}

TEST(RangeRounds, OfProcessesLeaveNothing) {
    run_as(RankMode::kProcess, 8, [](Rank& rank) {
        { const SymmetricRange first(rank, 4096); }
        const emu::Inventory before = is_emulated() ? emu::inventory() : emu::Inventory{};
        const int descriptors = open_descriptors();
        const int rounds = is_emulated() ? kRounds : 50;  // real ones take milliseconds each
        for (int round = 0; round < rounds; ++round) {
            const SymmetricRange range(rank, static_cast<std::size_t>(1 + round * 17));
        }
        if (is_emulated()) {
            expect_nothing_left(rank, before, "the rounds");
        }
        EXPECT_EQ(open_descriptors(), descriptors);
    });
}

}  // namespace
}  // namespace symm
