// Communicators that may run on one device at the same time must fit on it together.

#include "labs/06_allreduce/communicator/residency.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "common/ranks/ranks.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "labs/06_allreduce/communicator/communicator.hpp"

namespace symm {
namespace {

TEST(ResidencyShare, RefusesWhatDoesNotFitBesideTheOthers) {
    constexpr int kDevice = 77;  // not a device of this machine: only these shares
    const ResidencyShare first(kDevice, 100, 132);
    EXPECT_THROW(ResidencyShare(kDevice, 33, 132), std::invalid_argument);
    const ResidencyShare second(kDevice, 32, 264);
    EXPECT_THROW(ResidencyShare(kDevice, 1, 264),
                 std::invalid_argument);  // 132 by the largest kernel
    const ResidencyShare elsewhere(kDevice + 1, 132, 132);
}

// If one communicator's kernel kept the other's from starting, no call would end.
TEST(Communicators, LaunchedInOppositeOrdersBothEnd) {
    run_ranks({2, RankMode::kThread, {}}, [](Rank& rank) {
        const CommunicatorOptions half{.max_blocks = 32};
        Communicator a(rank, half);
        Communicator b(rank, half);
        const Stream streams[2];
        Verifier verifier(rank.rank(), rank.size());
        constexpr std::size_t kCount = 100'000;
        const CUdeviceptr in = a.allocate(kCount * sizeof(float));
        const CUdeviceptr of_a = a.allocate(kCount * sizeof(float));
        const CUdeviceptr input_of_b = b.allocate(kCount * sizeof(float));
        const CUdeviceptr of_b = b.allocate(kCount * sizeof(float));
        verifier.fill(streams[0], {DataType::kFloat}, in, kCount);
        streams[0].synchronize();
        const auto call = [&](Communicator& communicator, CUdeviceptr from, CUdeviceptr to,
                              int stream) {
            communicator.all_reduce(from, to, kCount, DataType::kFloat, ReduceOp::kSum,
                                    streams[stream].get(), Algorithm::kTwoShot);
        };
        rank.bootstrap().barrier("filled");
        for (int round = 0; round < 10; ++round) {
            if (rank.rank() == 0) {
                call(a, in, of_a, 0);
                call(b, input_of_b, of_b, 1);
            } else {
                call(b, input_of_b, of_b, 1);
                call(a, in, of_a, 0);
            }
        }
        rank.bootstrap().together("both ended", [&] {
            a.synchronize(streams[0], "the first communicator");
            b.synchronize(streams[1], "the second communicator");
            verifier.check(streams[0], {DataType::kFloat}, of_a, kCount);
        });
    });
}

}  // namespace
}  // namespace symm
