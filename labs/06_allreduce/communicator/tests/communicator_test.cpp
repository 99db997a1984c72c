#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "common/cuda/device_memory.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// In pieces, if it exceeds scratch memory; by the copy engine where each rank has a device.
TEST(Communicator, ReducesMemoryThatIsInNoWindow) {
    on_ranks(2, [](Side& side) {
        const std::size_t most = 5 * sentinel_limit(2) / 2;
        DeviceMemory buffer(most);
        for (const DataType type : {DataType::kFloat, DataType::kUint8}) {
            const std::size_t bytes = is_floating(type) ? most : 5 * kOneShotLimit / 2;
            const CallPlan plan =
                side.reduce_and_check(buffer.address(), buffer.address(), bytes / size_of(type) - 3,
                                      {type}, Algorithm::kAuto);
            EXPECT_THAT(describe(plan, 2), HasSubstr("not in a window"));
        }
    });
}

// More than scratch memory holds.
TEST(Communicator, PushesPieceByPiece) {
    on_ranks(3, [](Side& side) {
        const std::size_t count = 5 * push_limit(3) / 2 / sizeof(float) - 3;
        DeviceMemory buffer(count * sizeof(float));
        side.reduce_and_check(buffer.address(), buffer.address(), count, {DataType::kFloat},
                              Algorithm::kPush);
    });
}

// More than scratch memory holds, with a partial pack at the end.
TEST(Communicator, SendsChunksAndCopiesRoundByRound) {
    for (const auto& [ranks, algorithm] :
         {std::pair{2, Algorithm::kChunks}, std::pair{3, Algorithm::kChunks},
          std::pair{2, Algorithm::kCopy}, std::pair{3, Algorithm::kCopy}}) {
        if (algorithm == Algorithm::kCopy && !has_copy(ranks)) {
            continue;
        }
        on_ranks(ranks, [algorithm = algorithm](Side& side) {
            // Three rounds.
            const std::size_t count = static_cast<std::size_t>(side.rank.size()) *
                                          peer_slot_bytes(side.rank.size()) / sizeof(float) * 5 /
                                          2 +
                                      1;
            const CUdeviceptr in = side.allocate(count * sizeof(float));
            const CUdeviceptr out = side.allocate(count * sizeof(float));
            const DeviceMemory in_no_window(count * sizeof(float));
            // The last one almost fills the slots: the rest lies behind their last packs.
            const std::size_t all_slots = static_cast<std::size_t>(side.rank.size()) *
                                          peer_slot_bytes(side.rank.size()) / sizeof(float);
            for (const auto& [to, elements] : {std::pair{out, count},
                                               {in, count},
                                               {in_no_window.address(), count},
                                               {out, all_slots - 1},
                                               {in_no_window.address(), all_slots - 1}}) {
                side.reduce_and_check(in, to, elements, {DataType::kFloat}, algorithm);
            }
        });
    }
}

// The ranks' remaining windows would not match.
TEST(Communicator, RefusesToReleaseDifferentWindows) {
    on_ranks(2, [](Side& side) {
        const std::array windows{side.communicator.allocate(4096),
                                 side.communicator.allocate(4096)};
        EXPECT_THROW(side.communicator.release(windows.at(side.rank.rank())),
                     std::invalid_argument);
        for (const CUdeviceptr window : windows) {
            side.communicator.release(window);
        }
    });
}

// Rank 1's window begins in the middle of its memory's first segment.
TEST(Communicator, RegistersAnyPartOfMemory) {
    on_ranks(2, [](Side& side) {
        const SymmetricRange own(side.rank, 1 << 16);
        const CUdeviceptr pointer = own.local() + (side.rank.rank() == 1 ? 4112 : 0);
        const CUdeviceptr window = side.communicator.register_memory(pointer, 8192);
        for (const CUdeviceptr buffer : {window, pointer}) {
            side.reduce_and_check(buffer, buffer + 4096, 999, {DataType::kFloat},
                                  Algorithm::kTwoShot);
        }
        EXPECT_THROW(side.call(window + 8000, window + 8000, 999, {}, Algorithm::kTwoShot),
                     std::invalid_argument);
        side.communicator.release(window);
        EXPECT_THROW(side.communicator.release(window), std::invalid_argument);
        EXPECT_THROW(side.call(window, window, 9, {}, Algorithm::kTwoShot), std::invalid_argument);
    });
}

// Memory in a window has two addresses, and one more in each further window.
TEST(Communicator, SeesOverlapThroughOtherAddresses) {
    on_ranks(2, [](Side& side) {
        const SymmetricRange own(side.rank, 1 << 16);
        const CUdeviceptr window = side.communicator.register_memory(own.local(), 1 << 16);
        const CUdeviceptr second = side.communicator.register_memory(window, 1 << 16);
        for (const CUdeviceptr other : {own.local(), second}) {
            EXPECT_THAT(
                [&] { side.call(window, other + 400, 999, {}, Algorithm::kTwoShot); },
                ::testing::ThrowsMessage<std::invalid_argument>(::testing::HasSubstr("overlap")));
            side.reduce_and_check(window, other + 4096, 999, {DataType::kFloat},
                                  Algorithm::kTwoShot);
        }
    });
}

TEST(Communicator, RefusesNumbersThatMeanNothing) {
    run_ranks({1, RankMode::kThread, {}}, [](Rank& rank) {
        EXPECT_THROW(name_of(static_cast<Collective>(99)), std::invalid_argument);
        EXPECT_THROW(name_of(static_cast<DataType>(99)), std::invalid_argument);
        EXPECT_THROW(name_of(static_cast<ReduceOp>(99)), std::invalid_argument);
        EXPECT_THROW(name_of(static_cast<Algorithm>(99)), std::invalid_argument);
        EXPECT_THROW(name_of(static_cast<RankMode>(99)), std::invalid_argument);
        for (const std::chrono::nanoseconds limit : {0s, -1s}) {
            EXPECT_THROW(Communicator(rank, {.limit = limit}), std::invalid_argument);
        }
        for (const int ranks : {-1, 0, kMaxAllReduceRanks + 1}) {
            EXPECT_THROW(Communicator::state_bytes(ranks), std::invalid_argument);
        }
        // The longest limit there is.
        Side patient(rank, {.limit = std::chrono::nanoseconds::max()});
        const CUdeviceptr window = patient.allocate(4096);
        patient.reduce_and_check(window, window, 100, {}, Algorithm::kAuto);
    });
}

// The scope of a communicator and its stream ends with eight calls in flight: all complete.
TEST(Communicator, AwaitsItsCallsWhenItIsDestroyed) {
    constexpr std::size_t kCount = 1000;
    for (int round = 0; round < 8; ++round) {
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            const DeviceMemory sum(kCount * sizeof(float));
            Verifier verifier(rank.rank(), rank.size());
            const Stream checked;
            {
                Side side(rank, {.limit = 20s});
                const CUdeviceptr window = side.allocate(kCount * sizeof(float));
                verifier.fill(checked, {}, window, kCount);
                checked.synchronize();
                for (const Algorithm algorithm : {Algorithm::kOneShot, Algorithm::kSentinel,
                                                  Algorithm::kPush, Algorithm::kOneShot}) {
                    side.call(window, sum.address(), kCount, {}, algorithm);
                    side.call(window, sum.address(), kCount, {}, algorithm);
                }
            }
            verifier.check(checked, {}, sum.address(), kCount);
            rank.bootstrap().barrier("done");
        });
    }
}

// A call that can never end does not keep its communicator alive.
TEST(Communicator, EndsItsCallsWhenItIsDestroyed) {
    const auto start = std::chrono::steady_clock::now();
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        {
            Side side(rank, {.limit = 1s});
            const CUdeviceptr window = side.allocate(1 << 12);
            if (rank.rank() == 0) {
                side.call(window, window, 100);
            }
        }
        rank.bootstrap().barrier("destroyed", Deadline::after(20s));
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

}  // namespace
}  // namespace symm
