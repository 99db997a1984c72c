// A communicator whose other ranks fail, hang, or do not call: its kernels end, and name the rank
// that they waited for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <latch>
#include <thread>

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// The kernel ends by itself, and names the rank that it waited for.
TEST(Communicator, EndsItsKernelsWhenARankHasFailed) {
    const auto start = std::chrono::steady_clock::now();
    std::latch queued(2);  // so that rank 1 leaves while the others' kernels wait for it
    std::string error;
    try {
        run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = 20s});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(4096);
            if (rank.rank() == 1) {
                while (!queued.try_wait() && std::chrono::steady_clock::now() - start < 15s) {
                    std::this_thread::sleep_for(1ms);
                }
                throw std::runtime_error("the GPU has gone fishing");
            }
            communicator.all_reduce(window, window, 1024, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
            queued.count_down();
            communicator.synchronize(stream, "a sum that cannot be");
        });
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    EXPECT_EQ(error, "rank 1 failed: the GPU has gone fishing");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{10});
}

/// The error of run_ranks() if rank 1 of three processes gets a signal before it calls.
std::string error_where_rank_1_gets(int signal, std::chrono::nanoseconds limit) {
    return error_of(ranks_of_this_test(3, RankMode::kProcess), [&](Rank& rank) {
        Communicator communicator(rank, {.limit = limit});
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(4096);
        rank.bootstrap().barrier("all there");
        if (rank.rank() == 1) {
            ::raise(signal);
        }
        rank.bootstrap().together("checked call", [&] {
            communicator.all_reduce(window, window, 1024, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
            communicator.synchronize(stream, "a sum that cannot be");
        });
    });
}

// A rank is stopped, or hangs: the others report what their kernels waited for, and from which
// rank.
TEST(Communicator, NamesAStoppedRankByWhatTheKernelWaitedFor) {
    const VariableInForce timeout("SYMM_TIMEOUT", "5");
    const std::string error = error_where_rank_1_gets(SIGSTOP, 2s);
    if (is_rank_process()) {
        return;
    }
    EXPECT_NE(error.find("waited 2 s in a kernel for"), std::string::npos) << error;
    EXPECT_NE(error.find("from rank 1"), std::string::npos) << error;
}

// A killed process sends nothing more; the others do not wait until their deadline.
TEST(Communicator, EndsItsKernelsWhenARankIsKilled) {
    const auto start = std::chrono::steady_clock::now();
    const std::string error = error_where_rank_1_gets(SIGKILL, 60s);
    if (is_rank_process()) {
        return;
    }
    EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
    EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST(Communicator, IsAbortedByAnotherThread) {
    run_ranks({2, RankMode::kThread, {}}, [](Rank& rank) {
        Communicator communicator(rank, {.limit = 20s});
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(4096);
        EXPECT_EQ(communicator.async_error(), "");
        if (rank.rank() == 0) {
            const auto start = std::chrono::steady_clock::now();
            communicator.all_reduce(window, window, 1024, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
            std::jthread other([&] {
                std::this_thread::sleep_for(100ms);
                communicator.abort();
            });
            EXPECT_THROW(communicator.synchronize(stream, "a sum that cannot be"),
                         std::runtime_error);
            EXPECT_NE(communicator.async_error().find("aborted"), std::string::npos);
            communicator.all_reduce(window, window, 1024, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
            EXPECT_THROW(communicator.synchronize(stream, "one more"), std::runtime_error);
            EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
        }
        rank.bootstrap().barrier("aborted");
    });
}

// Rank 1 does not call, and uses its memory for something else. The calls that rank 0 has queued
// must not write there.
TEST(Communicator, WritesNothingToARankThatDoesNotCall) {
    constexpr std::size_t kBytes = 1 << 16;
    for (const Algorithm algorithm : all_algorithms(2)) {
        SCOPED_TRACE(name_of(algorithm));
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = kShortLimit});
            const Stream stream;
            const CUdeviceptr in = communicator.allocate(kBytes);
            const CUdeviceptr out = communicator.allocate(kBytes);
            first_call(communicator, out, stream, algorithm);
            const auto call = [&](std::size_t count, CUdeviceptr to) {
                communicator.all_reduce(in, to, count, DataType::kFloat, ReduceOp::kSum,
                                        stream.get(), algorithm);
            };
            const auto mine = static_cast<unsigned char>(rank.rank() + 1);
            fill(in, mine, kBytes);
            fill(out, mine, kBytes);
            rank.bootstrap().barrier("filled");
            if (rank.rank() == 0) {
                for (int i = 0; i < 3; ++i) {
                    call(kBytes / sizeof(float), out);
                }
                EXPECT_THROW(communicator.synchronize(stream, "one call"), std::runtime_error);
            }
            rank.bootstrap().barrier("gave up");
            if (rank.rank() == 1) {
                std::vector<unsigned char> seen(kBytes);
                copy_to_host(seen.data(), in, kBytes);
                EXPECT_THAT(seen, ::testing::Each(mine));
                copy_to_host(seen.data(), out, kBytes);
                EXPECT_THAT(seen, ::testing::Each(mine));
            }
            rank.bootstrap().barrier("looked");
        });
    }
}

// A rank may be late by any time below the limit.
TEST(Communicator, WaitsForARankThatIsLate) {
    // On GPUs, each rank has its own: next to a waiting kernel a late one may not start.
    const int ranks = is_emulated() ? 3 : std::min(device_count(), 3);
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Communicator communicator(rank, {.limit = 20s});
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(1 << 12);
        for (const Algorithm algorithm : all_algorithms(ranks)) {
            if (rank.rank() == 1) {
                std::this_thread::sleep_for(1s);
            }
            communicator.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum,
                                    stream.get(), algorithm);
        }
        communicator.synchronize(stream, "calls of a late rank");
        rank.bootstrap().barrier("done");
    });
}

// One communicator fails on both ranks and is destroyed; the other one goes on.
TEST(Communicator, LeavesOthersUnharmed) {
    run_ranks({2, RankMode::kThread, {}}, [](Rank& rank) {
        Communicator healthy(rank, {.limit = 20s, .max_blocks = 1});
        const CUdeviceptr window = healthy.allocate(1 << 12);
        const Stream stream;
        Verifier verifier(rank.rank(), rank.size());
        const auto is_right = [&](Algorithm algorithm) {
            verifier.fill(stream, {}, window, 1000);
            healthy.all_reduce(window, window, 1000, DataType::kFloat, ReduceOp::kSum, stream.get(),
                               algorithm);
            healthy.synchronize(stream, "a healthy call");
            verifier.check(stream, {}, window, 1000);
        };
        {
            Communicator failing(rank, {.limit = kShortLimit, .max_blocks = 1});
            const CUdeviceptr other = failing.allocate(1 << 12);
            const Stream waiting;
            if (rank.rank() == 0) {
                failing.all_reduce(other, other, 1000, DataType::kFloat, ReduceOp::kSum,
                                   waiting.get());
            }
            is_right(Algorithm::kTwoShot);  // while the failing call waits
            if (rank.rank() == 0) {
                EXPECT_THROW(failing.synchronize(waiting, "a call of one rank"),
                             std::runtime_error);
            }
            rank.bootstrap().barrier("failed");
        }
        // Freeing memory waits for all kernels of the device, including other ranks'.
        rank.bootstrap().barrier("destroyed");
        for (const Algorithm algorithm :
             {Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kTwoShot}) {
            is_right(algorithm);
        }
        rank.bootstrap().barrier("done");
    });
}

TEST(Communicator, NamesTheRankThatDoesNotCall) {
    for (const Algorithm algorithm : all_algorithms(3)) {
        std::string told;
        run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = kShortLimit});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(1 << 12);
            first_call(communicator, window, stream, algorithm);
            if (rank.rank() != 1) {
                communicator.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum,
                                        stream.get(), algorithm);
                try {
                    communicator.synchronize(stream, "the AllReduce");
                } catch (const std::runtime_error& error) {
                    if (rank.rank() == 0) {
                        told = error.what();
                    }
                }
            }
            rank.bootstrap().barrier("told");
        });
        EXPECT_NE(told.find("from rank 1: expected"), std::string::npos)
            << name_of(algorithm) << ": " << told;
    }
}

}  // namespace
}  // namespace symm
