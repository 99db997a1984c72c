// A communicator whose other ranks fail, hang, or do not call: its kernels end, and name the rank
// that they waited for.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <latch>
#include <thread>

#include "common/cuda/copy.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

// The kernel ends by itself, and names the rank that it waited for.
TEST(Communicator, EndsItsKernelsWhenARankHasFailed) {
    const auto start = std::chrono::steady_clock::now();
    std::latch queued(2);  // so that rank 1 leaves while the others' kernels wait for it
    const std::string error = error_of({3, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, {.limit = 20s});
        const CUdeviceptr window = side.allocate(4096);
        if (rank.rank() == 1) {
            while (!queued.try_wait() && std::chrono::steady_clock::now() - start < 15s) {
                std::this_thread::sleep_for(1ms);
            }
            throw std::runtime_error("the GPU has gone fishing");
        }
        side.call(window, window, 1024);
        queued.count_down();
        side.synchronize();
    });
    EXPECT_EQ(error, "rank 1 failed: the GPU has gone fishing");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{10});
}

// A rank is stopped, or hangs: the others report what their kernels waited for, and from which
// rank.
TEST(Communicator, NamesAStoppedRankByWhatTheKernelWaitedFor) {
    const VariableInForce timeout("SYMM_TIMEOUT", "5");
    const std::string error = error_of(ranks_of_this_test(3, RankMode::kProcess), [&](Rank& rank) {
        Side side(rank, {.limit = 2s});
        const CUdeviceptr window = side.allocate(4096);
        rank.bootstrap().barrier("all there");
        if (rank.rank() == 1) {
            ::raise(SIGSTOP);
        }
        rank.bootstrap().together("checked call", [&] {
            side.call(window, window, 1024);
            side.synchronize();
        });
    });
    if (!is_rank_process()) {
        EXPECT_THAT(error, ::testing::AllOf(HasSubstr("waited 2 s in a kernel for"),
                                            HasSubstr("from rank 1")));
    }
}

TEST(Communicator, IsAbortedByAnotherThread) {
    const auto body = [](Side& side) {
        const CUdeviceptr window = side.allocate(4096);
        EXPECT_EQ(side.communicator.async_error(), "");
        if (side.rank.rank() == 0) {
            const auto start = std::chrono::steady_clock::now();
            side.call(window, window, 1024);
            std::jthread other([&] {
                std::this_thread::sleep_for(100ms);
                side.communicator.abort();
            });
            EXPECT_THROW(side.synchronize(), std::runtime_error);
            EXPECT_NE(side.communicator.async_error().find("aborted"), std::string::npos);
            side.call(window, window, 1024);
            EXPECT_THROW(side.synchronize(), std::runtime_error);
            EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        }
    };
    on_ranks(2, body, {.limit = 20s});
}

// Rank 1 does not call, and uses its memory for something else. The calls that rank 0 has queued
// must not write there.
TEST(Communicator, WritesNothingToARankThatDoesNotCall) {
    constexpr std::size_t kBytes = 1 << 16;
    for (const Algorithm algorithm : algorithms_of(2)) {
        SCOPED_TRACE(name_of(algorithm));
        const auto body = [&](Side& side) {
            const CUdeviceptr in = side.allocate(kBytes);
            const CUdeviceptr out = side.allocate(kBytes);
            side.first_call(out, algorithm);
            const auto mine = static_cast<unsigned char>(side.rank.rank() + 1);
            fill(in, mine, kBytes);
            fill(out, mine, kBytes);
            side.rank.bootstrap().barrier("filled");
            if (side.rank.rank() == 0) {
                for (int i = 0; i < 3; ++i) {
                    side.call(in, out, kBytes / sizeof(float), {}, algorithm);
                }
                EXPECT_THROW(side.synchronize(), std::runtime_error);
            }
            side.rank.bootstrap().barrier("gave up");
            for (const CUdeviceptr buffer : {in, out}) {
                if (side.rank.rank() == 1) {
                    std::vector<unsigned char> seen(kBytes);
                    copy_to_host(seen.data(), buffer, kBytes);
                    EXPECT_THAT(seen, ::testing::Each(mine));
                }
            }
        };
        on_ranks(2, body, {.limit = kShortLimit});
    }
}

// A rank may be late by any time below the limit.
TEST(Communicator, WaitsForARankThatIsLate) {
    // On GPUs, each rank has its own: next to a waiting kernel a late one may not start.
    const int ranks = is_emulated() ? 3 : std::min(device_count(), 3);
    const auto body = [&](Side& side) {
        const CUdeviceptr window = side.allocate(1 << 12);
        for (const Algorithm algorithm : algorithms_of(ranks)) {
            if (side.rank.rank() == 1) {
                std::this_thread::sleep_for(1s);
            }
            side.call(window, window, 100, {}, algorithm);
        }
        side.synchronize();
    };
    on_ranks(ranks, body, {.limit = 20s});
}

// One communicator fails on both ranks and is destroyed; the other one goes on.
TEST(Communicator, LeavesOthersUnharmed) {
    const auto body = [](Side& healthy) {
        const int rank = healthy.rank.rank();
        const CUdeviceptr window = healthy.allocate(1 << 12);
        {
            Side failing(healthy.rank, {.limit = kShortLimit, .max_blocks = 1});
            const CUdeviceptr other = failing.allocate(1 << 12);
            if (rank == 0) {
                failing.call(other, other, 1000);
            }
            // While the failing call waits.
            healthy.reduce_and_check(window, window, 1000, {}, Algorithm::kTwoShot);
            if (rank == 0) {
                EXPECT_THROW(failing.synchronize(), std::runtime_error);
            }
            healthy.rank.bootstrap().barrier("failed");
        }
        // Freeing memory waits for all kernels of the device, including other ranks'.
        healthy.rank.bootstrap().barrier("destroyed");
        for (const Algorithm algorithm :
             {Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kTwoShot}) {
            healthy.reduce_and_check(window, window, 1000, {}, algorithm);
        }
    };
    on_ranks(2, body, {.limit = 20s, .max_blocks = 1});
}

TEST(Communicator, NamesTheRankThatDoesNotCall) {
    for (const Collective collective : kCollectives) {
        for (const Algorithm algorithm : algorithms_of(3, {.collective = collective})) {
            SCOPED_TRACE(fmt::format("{} by {}", name_of(collective), name_of(algorithm)));
            const auto body = [&](Side& side) {
                const CUdeviceptr in = side.allocate(1 << 12);
                const CUdeviceptr out = side.allocate(1 << 12);
                side.first_call(in, algorithm);
                if (side.rank.rank() != 1) {
                    side.call(in, out, 100, {.collective = collective}, algorithm);
                    const std::string told = text_thrown_by([&] { side.synchronize(); });
                    // Rank 2 may have waited for rank 0, which waited for rank 1. A count does
                    // not tell who has not added to it.
                    EXPECT_THAT(told,
                                HasSubstr(algorithm == Algorithm::kMulticast ? "expected 9, saw 8"
                                          : side.rank.rank() == 0 ? "from rank 1: expected"
                                                                  : "rank"));
                }
            };
            on_ranks(3, body, {.limit = kShortLimit});
        }
    }
}

}  // namespace
}  // namespace symm
