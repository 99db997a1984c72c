// A communicator whose other ranks fail, hang, or do not call: its kernels end, and say for whom
// they waited.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <latch>
#include <thread>

#include "common/ranks/ranks.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/communicator.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// The kernel ends by itself and says for whom it waited.
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

// A rank that is stopped, or hangs: what the others say is what their kernels waited for, and of
// whom.
TEST(Communicator, NamesAStoppedRankByWhatTheKernelWaitedFor) {
    const VariableInForce timeout("SYMM_TIMEOUT", "5");
    const std::string error = error_of(ranks_of_this_test(3, RankMode::kProcess), [](Rank& rank) {
        Communicator communicator(rank, {.limit = 2s});
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(4096);
        rank.bootstrap().barrier("all there");
        if (rank.rank() == 1) {
            ::raise(SIGSTOP);
        }
        rank.bootstrap().together("checked call", [&] {
            communicator.all_reduce(window, window, 1024, DataType::kFloat, ReduceOp::kSum,
                                    stream.get());
            communicator.synchronize(stream, "a sum that cannot be");
        });
    });
    if (is_rank_process()) {
        return;
    }
    EXPECT_NE(error.find("waited 2.0 s in a kernel for"), std::string::npos) << error;
    EXPECT_NE(error.find("of rank 1"), std::string::npos) << error;
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

TEST(Communicator, NamesTheRankThatDoesNotCall) {
    for (const Algorithm algorithm :
         {Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kTwoShot}) {
        std::string told;
        run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = 300ms});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(1 << 12);
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
        EXPECT_NE(told.find("of rank 1: expected"), std::string::npos)
            << name_of(algorithm) << ": " << told;
    }
}

}  // namespace
}  // namespace symm
