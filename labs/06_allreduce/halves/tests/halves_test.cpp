// ReduceScatter and AllGather: each by packets, by the kernel of two shots and by the copy engine,
// compared with the reference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/graph.hpp"
#include "common/tests/sanitized.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

constexpr std::array kHalves{Collective::kReduceScatter, Collective::kAllGather};

std::vector<Algorithm> ways(int ranks) {
    return has_copy(ranks) ? std::vector{Algorithm::kOneShot, Algorithm::kTwoShot, Algorithm::kCopy}
                           : std::vector{Algorithm::kOneShot, Algorithm::kTwoShot};
}

std::size_t part_bytes(const Side& side, std::size_t count, DataType type) {
    return count * size_of(type) * static_cast<std::size_t>(side.rank.size());
}

/// Runs `body(side, half, algorithm)` for all halves and algorithms.
template <class Body>
void on_all(int ranks, const Body& body) {
    if (ranks > kMaxRanksOnGpus && !is_emulated()) {
        GTEST_SKIP() << "no GPU kernel is compiled for so many ranks";
    }
    on_ranks(ranks, [&](Side& side) {
        for (const Collective half : kHalves) {
            for (const Algorithm way : ways(ranks)) {
                body(side, half, way);
            }
        }
    });
}

class Halves : public ::testing::TestWithParam<int> {};

// Counts around packets and vectors. Different counts in a row, so that blocks that were idle in
// one call take part in the next.
TEST_P(Halves, AreRightForAnyCountCallAfterCall) {
    on_all(GetParam(), [](Side& side, Collective half, Algorithm way) {
        constexpr DataType kType = DataType::kFloat;
        constexpr std::size_t kMost = 2051;
        const CUdeviceptr in = side.allocate(part_bytes(side, kMost, kType));
        const CUdeviceptr out = side.allocate(part_bytes(side, kMost, kType));
        for (const std::size_t count : {std::size_t{1}, std::size_t{4}, kMost, std::size_t{2},
                                        std::size_t{129}, std::size_t{1000}}) {
            side.reduce_and_check(in, out, count, {kType, ReduceOp::kSum, half}, way);
            side.reduce_and_check(in, out, count, {kType, ReduceOp::kSum, half}, way);
        }
        side.communicator.release(in);
        side.communicator.release(out);
    });
}

TEST_P(Halves, AreRightInPlace) {
    on_all(GetParam(), [](Side& side, Collective half, Algorithm way) {
        constexpr DataType kType = DataType::kBfloat16;
        const CUdeviceptr buffer = side.allocate(part_bytes(side, 1025, kType));
        for (const std::size_t count : {std::size_t{5}, std::size_t{1025}, std::size_t{64}}) {
            const Arithmetic sum{kType, ReduceOp::kSum, half};
            const auto [in, out] = side.verifier.places(sum, buffer, buffer, count);
            side.reduce_and_check(in, out, count, sum, way);
        }
        side.communicator.release(buffer);
    });
}

// Each rank at its own offsets. On odd ranks input and output swap windows.
TEST_P(Halves, AreRightAtAnyOffset) {
    on_all(GetParam(), [](Side& side, Collective half, Algorithm way) {
        constexpr DataType kType = DataType::kHalf;
        constexpr std::size_t kCount = 501;
        const std::size_t room = part_bytes(side, kCount, kType) + 4096;
        CUdeviceptr in = side.allocate(room);
        CUdeviceptr out = side.allocate(room);
        const auto r = static_cast<std::size_t>(side.rank.rank());
        for (const std::size_t unit : {size_of(kType), sizeof(simt::Pack16)}) {
            side.reduce_and_check((r % 2 == 0 ? in : out) + (r * 7 + 1) * unit,
                                  (r % 2 == 0 ? out : in) + (r * 5 + 2) * unit, kCount,
                                  {kType, ReduceOp::kSum, half}, way);
        }
        side.communicator.release(in);
        side.communicator.release(out);
    });
}

TEST_P(Halves, WriteNothingBehindTheirOutput) {
    on_all(GetParam(), [](Side& side, Collective half, Algorithm way) {
        constexpr DataType kType = DataType::kInt8;
        constexpr std::size_t kCount = 333;
        const bool gathers = half == Collective::kAllGather;
        const std::size_t bytes = gathers ? part_bytes(side, kCount, kType) : kCount;
        const CUdeviceptr in = side.allocate(part_bytes(side, kCount, kType));
        const CUdeviceptr out = side.allocate(bytes + 64);
        Verifier::poison(side.stream, out, bytes + 64);
        side.reduce_and_check(in, out, kCount, {kType, ReduceOp::kSum, half}, way);
        std::vector<unsigned char> behind(64);
        copy_to_host(behind.data(), out + bytes, behind.size());
        EXPECT_EQ(behind, std::vector<unsigned char>(64, 0xff));
        side.communicator.release(in);
        side.communicator.release(out);
    });
}

// Mixed with AllReduces by packets, which use the same scratch memory and epochs.
TEST_P(Halves, ReplayAsAGraphAmongOtherCalls) {
    on_ranks(std::min(GetParam(), kMaxRanksOnGpus), [](Side& side) {
        constexpr std::size_t kCount = 100;
        constexpr DataType kType = DataType::kFloat;
        const CUdeviceptr in = side.allocate(part_bytes(side, kCount, kType));
        std::vector<CUdeviceptr> outs;
        std::vector<std::pair<Arithmetic, Algorithm>> calls;
        for (const Algorithm way : ways(side.rank.size())) {
            for (const Collective what :
                 {Collective::kReduceScatter, Collective::kAllReduce, Collective::kAllGather}) {
                calls.push_back({{kType, ReduceOp::kSum, what}, way});
                outs.push_back(side.allocate(part_bytes(side, kCount, kType)));
            }
        }
        const Graph graph = Graph::capture(side.stream.get(), [&] {
            for (std::size_t i = 0; i < calls.size(); ++i) {
                side.call(in, outs[i], kCount, calls[i].first, calls[i].second);
            }
        });
        for (int replay = 0; replay < 3; ++replay) {
            side.verifier.fill(side.stream, {kType, ReduceOp::kSum, Collective::kReduceScatter}, in,
                               kCount);
            for (const CUdeviceptr out : outs) {
                Verifier::poison(side.stream, out, part_bytes(side, kCount, kType));
            }
            graph.launch(side.stream.get());
            for (std::size_t i = 0; i < calls.size(); ++i) {
                side.check(outs[i], kCount, calls[i].first);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, Halves,
                         ::testing::ValuesIn(testing::kSanitized
                                                 ? std::vector{2, 3}
                                                 : std::vector{1, 2, 3, 4, 5, 8, 16}));

TEST(HalvesOfAllTypes, AreRight) {
    on_all(3, [](Side& side, Collective half, Algorithm way) {
        const CUdeviceptr in = side.allocate(part_bytes(side, 300, DataType::kDouble));
        const CUdeviceptr out = side.allocate(part_bytes(side, 300, DataType::kDouble));
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                side.reduce_and_check(in, out, 299, {type, op, half}, way);
            }
        }
        side.communicator.release(in);
        side.communicator.release(out);
    });
}

// Sums that depend on the order of the ranks: both algorithms must give an AllReduce's bits.
TEST(ReduceScatter, HasTheBitsOfAnAllReduce) {
    on_ranks(5, [](Side& side) {
        constexpr std::size_t kCount = 1003;
        const auto ranks = static_cast<std::size_t>(side.rank.size());
        const auto r = static_cast<std::size_t>(side.rank.rank());
        std::vector<float> values(ranks * kCount);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto drawn = static_cast<float>((i * 7919 + r * 104729) % 65521 + 1);
            values[i] = (i + r) % 3 == 0 ? drawn * 1e7F : (i + r) % 3 == 1 ? drawn : -drawn * 1e-5F;
        }
        const CUdeviceptr in = side.allocate(part_bytes(side, kCount, DataType::kFloat));
        const CUdeviceptr out = side.allocate(part_bytes(side, kCount, DataType::kFloat));
        copy_to_device(in, values.data(), values.size() * sizeof(float));
        const auto result = [&](Collective collective, Algorithm way) {
            const bool scatters = collective == Collective::kReduceScatter;
            side.call(in, out, scatters ? kCount : ranks * kCount,
                      {DataType::kFloat, ReduceOp::kSum, collective}, way);
            side.communicator.synchronize(side.stream, "the call");
            std::vector<std::uint32_t> bits(kCount);
            const std::size_t own = scatters ? 0 : r * kCount * sizeof(float);
            copy_to_host(bits.data(), out + own, kCount * sizeof(float));
            return bits;
        };
        const auto expected = result(Collective::kAllReduce, Algorithm::kOneShot);
        for (const Algorithm way : ways(side.rank.size())) {
            EXPECT_EQ(result(Collective::kReduceScatter, way), expected);
        }
    });
}

// Parts that are larger than a slot, from memory in no window.
TEST(HalvesByCopies, AreRightInRounds) {
    if (!has_copy(3)) {
        GTEST_SKIP() << "each rank needs its own GPU";
    }
    on_ranks(3, [](Side& side) {
        const std::size_t count = copy_slot_bytes(3) / sizeof(float) * 9 / 4 + 1;
        const DeviceMemory in(part_bytes(side, count, DataType::kFloat));
        const DeviceMemory out(part_bytes(side, count, DataType::kFloat));
        for (const Collective half : kHalves) {
            side.reduce_and_check(in.address(), out.address(), count,
                                  {DataType::kFloat, ReduceOp::kSum, half}, Algorithm::kCopy);
        }
    });
}

// Every bit arrives, even those of signalling NaNs.
TEST(AllGather, ChangesNoBit) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCount = 1 << 16;
        const CUdeviceptr in = side.allocate(2 * kCount);
        const CUdeviceptr out = side.allocate(4 * kCount);
        std::vector<std::uint16_t> all(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            all[i] = static_cast<std::uint16_t>(i);
        }
        copy_to_device(in, all.data(), 2 * kCount);
        for (const Algorithm way : ways(side.rank.size())) {
            Verifier::poison(side.stream, out, 4 * kCount);
            side.communicator.all_gather(in, out, kCount, DataType::kHalf, side.stream.get(), way);
            side.communicator.synchronize(side.stream, "the AllGather");
            for (const std::size_t rank : {0, 1}) {
                std::vector<std::uint16_t> got(kCount);
                copy_to_host(got.data(), out + rank * 2 * kCount, 2 * kCount);
                EXPECT_EQ(got, all);
            }
        }
    });
}

// Calls from memory outside windows that exceed scratch memory take several launches.
TEST(Halves, TakeMemoryInNoWindow) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCount = kOneShotLimit / sizeof(float) + 77;
        const DeviceMemory in(2 * kCount * sizeof(float));
        const DeviceMemory out(2 * kCount * sizeof(float));
        for (const Collective half : kHalves) {
            const CallPlan plan =
                side.reduce_and_check(in.address(), out.address(), kCount,
                                      {DataType::kFloat, ReduceOp::kSum, half}, Algorithm::kAuto);
            EXPECT_EQ(plan.algorithm, Algorithm::kOneShot);
            EXPECT_LT(plan.piece, kCount);
        }
    });
}

// Only its own rank uses the smaller buffer, so it may be anywhere.
TEST(Halves, NeedAWindowForTheLargerBufferOnly) {
    on_ranks(3, [](Side& side) {
        constexpr std::size_t kCount = 1000;
        const CUdeviceptr window = side.allocate(3 * kCount * sizeof(float));
        const DeviceMemory other(3 * kCount * sizeof(float));
        side.reduce_and_check(window, other.address(), kCount,
                              {DataType::kFloat, ReduceOp::kSum, Collective::kReduceScatter},
                              Algorithm::kTwoShot);
        side.reduce_and_check(other.address(), window, kCount,
                              {DataType::kFloat, ReduceOp::kSum, Collective::kAllGather},
                              Algorithm::kTwoShot);
        EXPECT_THROW(side.call(other.address(), window, kCount,
                               {DataType::kFloat, ReduceOp::kSum, Collective::kReduceScatter},
                               Algorithm::kTwoShot),
                     std::invalid_argument);
    });
}

TEST(Halves, RefuseCallsThatAreNotPossible) {
    for (const Collective half : kHalves) {
        on_ranks(2, [&](Side& side) {
            const CUdeviceptr window = side.allocate(4096);
            const auto call = [&](CUdeviceptr in, CUdeviceptr out, std::size_t count,
                                  Algorithm way) {
                side.call(in, out, count, {DataType::kFloat, ReduceOp::kSum, half}, way);
            };
            EXPECT_THROW(call(window, window + 40, 100, Algorithm::kAuto), std::invalid_argument);
            EXPECT_THROW(call(window + 2, window + 2048, 10, Algorithm::kAuto),
                         std::invalid_argument);
            EXPECT_THROW(call(window, window + 2048, ~std::size_t{0} / 8 + 1, Algorithm::kAuto),
                         std::invalid_argument);
            EXPECT_THROW(call(window, window + 2048, 10, Algorithm::kSentinel),
                         std::invalid_argument);
            // In place at the start of the larger buffer: right only for rank 0.
            const CUdeviceptr out = side.rank.rank() == 1 ? window : window + 40;
            EXPECT_THROW(call(window, out, 100, Algorithm::kAuto), std::invalid_argument);
        });
    }
}

TEST(Halves, AreComparedWhereAsked) {
    const VariableInForce check("SYMM_CHECK", "1");
    on_ranks(2, [](Side& side) {
        const CUdeviceptr in = side.allocate(4096);
        const CUdeviceptr out = side.allocate(4096);
        const Collective mine =
            side.rank.rank() == 0 ? Collective::kReduceScatter : Collective::kAllReduce;
        try {
            side.call(in, out, 8, {DataType::kFloat, ReduceOp::kSum, mine}, Algorithm::kAuto);
            ADD_FAILURE() << "no error";
        } catch (const std::invalid_argument& error) {
            EXPECT_THAT(error.what(), ::testing::HasSubstr("call 1: reducescatter of 8 x float"));
        }
    });
}

// One rank does not call: the others end, and name the rank that they waited for.
TEST(Halves, EndWhereARankDoesNotCall) {
    for (const Collective half : kHalves) {
        for (const Algorithm way : {Algorithm::kOneShot, Algorithm::kTwoShot}) {
            run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
                Communicator communicator(rank, {.limit = kShortLimit});
                const Stream stream;
                const CUdeviceptr in = communicator.allocate(4096);
                const CUdeviceptr out = communicator.allocate(4096);
                if (rank.rank() != 1) {
                    if (half == Collective::kAllGather) {
                        communicator.all_gather(in, out, 100, DataType::kFloat, stream.get(), way);
                    } else {
                        communicator.reduce_scatter(in, out, 100, DataType::kFloat, ReduceOp::kSum,
                                                    stream.get(), way);
                    }
                    try {
                        communicator.synchronize(stream, "the call");
                        ADD_FAILURE() << "no error";
                    } catch (const std::runtime_error& error) {
                        EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1"));
                    }
                }
                rank.bootstrap().barrier("told");
            });
        }
    }
}

}  // namespace
}  // namespace symm
