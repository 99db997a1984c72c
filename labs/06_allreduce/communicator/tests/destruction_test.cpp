// A communicator that is destroyed with calls in flight.

#include <gtest/gtest.h>

#include <chrono>

#include "common/cuda/device_memory.hpp"
#include "common/ranks/ranks.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

// The scope of a communicator and its stream ends with eight calls in flight: all complete.
TEST(Communicator, AwaitsItsCallsWhenItIsDestroyed) {
    constexpr std::size_t kCount = 1000;
    for (int round = 0; round < 8; ++round) {
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            const DeviceMemory sum(kCount * sizeof(float));
            Verifier verifier(rank.rank(), rank.size());
            const Stream checked;
            {
                Communicator communicator(rank, {.limit = 20s});
                const Stream stream;
                const CUdeviceptr window = communicator.allocate(kCount * sizeof(float));
                verifier.fill(checked, {}, window, kCount);
                checked.synchronize();
                for (const Algorithm algorithm : {Algorithm::kOneShot, Algorithm::kSentinel,
                                                  Algorithm::kPush, Algorithm::kOneShot}) {
                    for (int i = 0; i < 2; ++i) {
                        communicator.all_reduce(window, sum.address(), kCount, DataType::kFloat,
                                                ReduceOp::kSum, stream.get(), algorithm);
                    }
                }
            }
            verifier.check(checked, {}, sum.address(), kCount);
            rank.bootstrap().barrier("done");
        });
    }
}

// A call that can never end does not keep its communicator alive.
TEST(Communicator, EndsItsCallsWhenItIsDestroyed) {
    const VariableInForce timeout("SYMM_TIMEOUT", "1");
    const auto start = std::chrono::steady_clock::now();
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        {
            Communicator communicator(rank, {.limit = 60s});
            const Stream stream;
            const CUdeviceptr window = communicator.allocate(1 << 12);
            if (rank.rank() == 0) {
                communicator.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum,
                                        stream.get());
            }
        }
        rank.bootstrap().barrier("destroyed", Deadline::after(20s));
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

}  // namespace
}  // namespace symm
