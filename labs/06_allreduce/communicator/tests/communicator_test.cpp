#include "labs/06_allreduce/communicator/communicator.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <vector>

#include "common/cuda/device_memory.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

TEST(Communicator, MixesAlgorithmsAndSizes) {
    on_ranks(3, [](Side& side) {
        const CUdeviceptr in = side.allocate(1 << 20);
        const CUdeviceptr out = side.allocate(1 << 20);
        const std::array in_turn{Algorithm::kSentinel,
                                 Algorithm::kTwoShot,
                                 has_copy(3) ? Algorithm::kCopy : Algorithm::kSentinel,
                                 Algorithm::kPush,
                                 Algorithm::kChunks,
                                 Algorithm::kOneShot};
        std::size_t count = 1;
        for (std::size_t call = 0; call < 24; ++call, count = count * 3 + 1) {
            count = count > 16'000 ? 5 : count;  // 64K: the emulated limit of three ranks
            side.reduce_and_check(in, out, count, {DataType::kFloat},
                                  in_turn.at(call % in_turn.size()));
        }
    });
}

// Calls share flags, so they run one after another.
TEST(Communicator, OrdersCallsOfSeveralStreams) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCount = 3000;
        const Stream other;
        std::vector<Verifier> verifiers;
        std::vector<CUdeviceptr> windows;
        for (int i = 0; i < 12; ++i) {
            verifiers.emplace_back(side.rank.rank(), side.rank.size());
            windows.push_back(side.allocate(kCount * sizeof(float)));
        }
        const auto stream_of = [&](std::size_t i) -> const Stream& {
            return i % 3 == 0 ? other : side.stream;
        };
        for (std::size_t i = 0; i < windows.size(); ++i) {
            verifiers[i].fill(stream_of(i), {}, windows[i], kCount);
        }
        for (std::size_t i = 0; i < windows.size(); ++i) {
            side.communicator.all_reduce(windows[i], windows[i], kCount, DataType::kFloat,
                                         ReduceOp::kSum, stream_of(i).get(),
                                         i % 2 == 0 ? Algorithm::kSentinel : Algorithm::kTwoShot);
        }
        side.rank.bootstrap().together("checked", [&] {
            side.communicator.synchronize(other, "calls");
            side.communicator.synchronize(side.stream, "calls");
            for (std::size_t i = 0; i < windows.size(); ++i) {
                verifiers[i].check(side.stream, {}, windows[i], kCount);
            }
        });
    });
}

// In pieces, if it exceeds scratch memory.
TEST(Communicator, ReducesMemoryThatIsInNoWindow) {
    on_ranks(2, [](Side& side) {
        const std::size_t most = 5 * sentinel_limit(2) / 2;
        DeviceMemory buffer(most);
        for (const DataType type : {DataType::kFloat, DataType::kUint8}) {
            const std::size_t bytes = is_floating(type) ? most : 5 * kOneShotLimit / 2;
            const CallPlan plan =
                side.reduce_and_check(buffer.address(), buffer.address(), bytes / size_of(type) - 3,
                                      {type}, Algorithm::kAuto);
            EXPECT_EQ(plan.reason, TunerReason::kNoWindow);
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
            const std::size_t count = chunks_limit(side.rank.size()) / sizeof(float) * 5 / 2 + 1;
            const CUdeviceptr in = side.allocate(count * sizeof(float));
            const CUdeviceptr out = side.allocate(count * sizeof(float));
            for (const CUdeviceptr to : {out, in, out}) {
                side.reduce_and_check(in, to, count, {DataType::kFloat}, algorithm);
            }
        });
    }
}

// Four calls at a time, of any kind. For more: --gtest_repeat=200 --gtest_shuffle, which draws
// different calls each time.
TEST(Communicator, TakesCallsOfAnyKindInAnyOrder) {
    const int ranks = is_emulated() ? 3 : std::min(device_count(), kMaxRanksOnGpus);
    const int rounds = is_emulated() ? 25 : 125;
    const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
    on_ranks(ranks, [=](Side& side) {
        const std::size_t most = is_emulated() ? 30'000 : 8 << 20;  // bytes
        constexpr std::size_t kAtOnce = 4;
        struct Call {
            Arithmetic arithmetic;
            CUdeviceptr out = 0;
            std::size_t count = 0;
        };
        const Stream other;
        std::vector<CUdeviceptr> in;
        std::vector<CUdeviceptr> out;
        std::vector<Verifier> verifiers;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            in.push_back(side.allocate(most + 64));
            out.push_back(side.allocate(most + 64));
            verifiers.emplace_back(side.rank.rank(), ranks);
        }
        std::mt19937 random(seed);  // the same on all ranks
        const auto drawn = [&](std::size_t below) { return random() % below; };
        for (int round = 0; round < rounds; ++round) {
            std::array<Call, kAtOnce> calls;
            for (std::size_t i = 0; i < kAtOnce; ++i) {
                Call& call = calls.at(i);
                call.arithmetic = {kDataTypes.at(drawn(kDataTypes.size())),
                                   kReduceOps.at(drawn(kReduceOps.size())),
                                   static_cast<Collective>(drawn(3))};
                const auto [type, op, collective] = call.arithmetic;
                const bool whole = collective == Collective::kAllReduce;
                const auto parts = static_cast<std::size_t>(whole ? 1 : ranks);
                call.count = 1 + drawn((most >> drawn(11)) / size_of(type) / parts);
                CUdeviceptr from = in[i] + drawn(5) * size_of(type);
                call.out = out[i] + drawn(5) * size_of(type);
                if (drawn(3) == 0) {  // in place
                    const std::size_t own =
                        call.count * size_of(type) * static_cast<std::size_t>(side.rank.rank());
                    if (collective == Collective::kAllGather) {
                        from = call.out + own;
                    } else {
                        call.out = from + (whole ? 0 : own);
                    }
                }
                std::vector<Algorithm> possible{Algorithm::kAuto, Algorithm::kOneShot,
                                                Algorithm::kTwoShot};
                if (is_floating(type) && whole) {
                    possible.push_back(Algorithm::kSentinel);
                    possible.push_back(Algorithm::kPush);
                }
                if (has_copy(ranks) && whole) {
                    possible.push_back(Algorithm::kCopy);
                }
                const Stream& stream = drawn(2) == 0 ? side.stream : other;
                Verifier::poison(stream, call.out,
                                 call.count * size_of(type) *
                                     (collective == Collective::kAllGather ? parts : 1));
                verifiers[i].fill(stream, call.arithmetic, from, call.count);
                side.communicator.call(collective, from, call.out, call.count, type, op,
                                       stream.get(), possible.at(drawn(possible.size())));
            }
            side.rank.bootstrap().together("checked", [&] {
                side.communicator.synchronize(side.stream, "calls");
                side.communicator.synchronize(other, "calls");
                for (std::size_t i = 0; i < kAtOnce; ++i) {
                    const Call& call = calls.at(i);
                    verifiers[i].check(side.stream, call.arithmetic, call.out, call.count);
                }
            });
        }
    });
}

TEST(Communicator, TurnsMemoryIntoAWindowAndBack) {
    on_ranks(2, [](Side& side) {
        const SymmetricRange own(side.rank, 1 << 16);
        const CUdeviceptr window = side.communicator.register_memory(own.local(), 1 << 16);
        for (const CUdeviceptr buffer : {window, own.local()}) {
            side.reduce_and_check(buffer, buffer, 999, {DataType::kFloat}, Algorithm::kTwoShot);
        }
        side.communicator.release(window);
        EXPECT_THROW(side.communicator.release(window), std::invalid_argument);
        EXPECT_THROW(
            side.communicator.all_reduce(window, window, 9, DataType::kFloat, ReduceOp::kSum,
                                         side.stream.get(), Algorithm::kTwoShot),
            std::invalid_argument);
    });
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
        EXPECT_THROW(
            side.communicator.all_reduce(window + 8000, window + 8000, 999, DataType::kFloat,
                                         ReduceOp::kSum, side.stream.get(), Algorithm::kTwoShot),
            std::invalid_argument);
        side.communicator.release(window);
    });
}

// Memory in a window has two addresses.
TEST(Communicator, SeesOverlapThroughTheOtherAddress) {
    on_ranks(2, [](Side& side) {
        const SymmetricRange own(side.rank, 1 << 16);
        const CUdeviceptr window = side.communicator.register_memory(own.local(), 1 << 16);
        EXPECT_THROW(side.communicator.all_reduce(window, own.local() + 400, 999, DataType::kFloat,
                                                  ReduceOp::kSum, side.stream.get()),
                     std::invalid_argument);
        side.reduce_and_check(window, own.local() + 4096, 999, {DataType::kFloat},
                              Algorithm::kTwoShot);
    });
}

TEST(Communicator, RefusesWhatCannotBeRight) {
    on_ranks(1, [](Side& side) {
        const CUdeviceptr window = side.communicator.allocate(1 << 12);
        const auto call = [&](CUdeviceptr in, CUdeviceptr out, std::size_t count) {
            side.communicator.all_reduce(in, out, count, DataType::kFloat, ReduceOp::kSum,
                                         side.stream.get(), Algorithm::kTwoShot);
        };
        EXPECT_THROW(call(window, window + 4, 100), std::invalid_argument);    // overlapping
        EXPECT_THROW(call(window + 2, window + 2, 1), std::invalid_argument);  // between elements
        EXPECT_THROW(call(window, window, 1025), std::invalid_argument);       // beyond the window
        EXPECT_NO_THROW(call(window, window, 0));
    });
}

TEST(Communicator, RefusesNumbersThatMeanNothing) {
    run_ranks({1, RankMode::kThread, {}}, [](Rank& rank) {
        Communicator communicator(rank, {.max_blocks = 1});  // leaves room for the last one
        const Stream stream;
        const CUdeviceptr window = communicator.allocate(4096);
        const auto call = [&](DataType type, ReduceOp op, Algorithm algorithm) {
            communicator.all_reduce(window, window, 100, type, op, stream.get(), algorithm);
        };
        EXPECT_THROW(call(static_cast<DataType>(99), ReduceOp::kSum, Algorithm::kAuto),
                     std::invalid_argument);
        EXPECT_THROW(call(DataType::kFloat, static_cast<ReduceOp>(99), Algorithm::kAuto),
                     std::invalid_argument);
        EXPECT_THROW(call(DataType::kFloat, ReduceOp::kSum, static_cast<Algorithm>(99)),
                     std::invalid_argument);
        EXPECT_THROW(call(DataType::kFloat, ReduceOp::kSum, static_cast<Algorithm>(-1)),
                     std::invalid_argument);
        EXPECT_EQ(testing::text_thrown_by([&] {
                      communicator.call(static_cast<Collective>(99), window, window, 100,
                                        DataType::kFloat, ReduceOp::kSum, stream.get());
                  }),
                  "99 is not a valid Collective");
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
        Communicator patient(rank, {.limit = std::chrono::nanoseconds::max(), .max_blocks = 1});
        patient.all_reduce(window, window, 100, DataType::kFloat, ReduceOp::kSum, stream.get());
        patient.synchronize(stream, "a call without a limit");
    });
}

}  // namespace
}  // namespace symm
