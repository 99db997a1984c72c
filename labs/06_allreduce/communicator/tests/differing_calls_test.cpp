// Ranks that make different calls: reported before anything is queued, or ended by the limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "common/cuda/device_memory.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Each difference of rank 1's call from rank 0's, and the error on both.
TEST(Communicator, NamesCallsThatDiffer) {
    struct Difference {
        std::size_t count;
        DataType type;
        ReduceOp op;
        bool window;
        std::string told;
    };
    const VariableInForce check("SYMM_CHECK", "1");
    for (const Difference& other :
         {Difference{99, DataType::kFloat, ReduceOp::kSum, true, "rank 1 makes call 2: 99 x float"},
          Difference{100, DataType::kInt32, ReduceOp::kSum, true, "100 x int32, sum"},
          Difference{100, DataType::kFloat, ReduceOp::kMax, true, "100 x float, max"},
          Difference{100, DataType::kFloat, ReduceOp::kSum, false, "buffers in no windows"}}) {
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank);
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(1 << 12);
            const DeviceMemory no_window(1 << 12);
            const auto call = [&](const Difference& how) {
                const CUdeviceptr buffer = how.window ? window : no_window.address();
                communicator.all_reduce(buffer, buffer, how.count, how.type, how.op, stream.get());
                communicator.synchronize(stream, "the AllReduce");
            };
            const Difference same{100, DataType::kFloat, ReduceOp::kSum, true, ""};
            call(same);
            try {
                call(rank.rank() == 1 ? other : same);
                ADD_FAILURE() << "no error for: " << other.told;
            } catch (const std::invalid_argument& error) {
                EXPECT_THAT(error.what(), ::testing::HasSubstr(other.told));
                EXPECT_THAT(error.what(),
                            ::testing::HasSubstr("rank 0 makes call 2: 100 x float, sum"));
            }
            call(same);  // nothing was queued, so the communicator can still be used
        });
    }
}

// Without SYMM_CHECK the calls wait for each other until the limit, with any algorithms. None
// returns a sum.
TEST(Communicator, EndsCallsThatDiffer) {
    for (const auto& algorithms : {std::pair{Algorithm::kTwoShot, Algorithm::kSentinel},
                                   std::pair{Algorithm::kOneShot, Algorithm::kTwoShot},
                                   std::pair{Algorithm::kPush, Algorithm::kSentinel},
                                   std::pair{Algorithm::kChunks, Algorithm::kSentinel},
                                   std::pair{Algorithm::kCopy, Algorithm::kSentinel}}) {
        if (algorithms.first == Algorithm::kCopy && !has_copy(2)) {
            continue;
        }
        const auto mine = algorithms.first;  // clang 14 captures no bindings
        const auto others = algorithms.second;
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank, {.limit = kShortLimit});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(1 << 12);
            first_call(communicator, window, stream, mine);
            const auto call = [&](Algorithm algorithm) {
                communicator.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum,
                                        stream.get(), algorithm);
            };
            call(rank.rank() == 0 ? mine : others);
            EXPECT_THROW(communicator.synchronize(stream, "the AllReduce"), std::runtime_error);
            rank.bootstrap().barrier("told");
        });
    }
}

}  // namespace
}  // namespace symm
