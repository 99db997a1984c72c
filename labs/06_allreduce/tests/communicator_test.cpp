#include "labs/06_allreduce/communicator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/graph.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/06_allreduce/result_check.hpp"

namespace symm {
namespace {

struct Case {
    int ranks;
    Algorithm algorithm;
    DataType type;
};

std::string title(const testing::TestParamInfo<Case>& info) {
    return fmt::format("{}_{}_{}", info.param.ranks, name_of(info.param.algorithm),
                       name_of(info.param.type));
}

/// One rank with all it needs for a checked call.
struct Side {
    explicit Side(Rank& r) : rank(r), communicator(r), verifier(r.rank(), r.size()) {}

    /// Fills the input, poisons the output, reduces, compares. Throws on all ranks where one is
    /// wrong.
    CallPlan reduce_and_check(CUdeviceptr in, CUdeviceptr out, std::size_t count,
                              const Arithmetic& arithmetic, Algorithm algorithm) {
        const auto [type, op] = arithmetic;
        verifier.fill(stream, arithmetic, in, count);
        if (in != out) {
            Verifier::poison(stream, out, count * size_of(type));
        }
        const CallPlan plan =
            communicator.all_reduce(in, out, count, type, op, stream.get(), algorithm);
        check(out, count, arithmetic);
        return plan;
    }
    void check(CUdeviceptr out, std::size_t count, const Arithmetic& arithmetic) {
        rank.bootstrap().together("checked", [&] {
            communicator.synchronize(stream, "the AllReduce");
            verifier.check(stream, arithmetic, out, count);
        });
    }

    Rank& rank;
    Communicator communicator;
    Verifier verifier;
    Stream stream;
};

/// Whether calls by the copy engine are possible: on GPUs, each rank needs one of its own.
bool has_copy(int ranks) {
    return is_emulated() || device_count() >= ranks;
}

/// Runs `body(side)` on every rank, and keeps all until the last has done.
template <class Body>
void on_ranks(int ranks, const Body& body) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank);
        body(side);
        rank.bootstrap().barrier("done");
    });
}

class AllReduce : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        if (algorithm_ == Algorithm::kCopy && !has_copy(ranks_)) {
            GTEST_SKIP() << "each rank needs a GPU of its own";
        }
    }

    const int ranks_ = GetParam().ranks;
    const Algorithm algorithm_ = GetParam().algorithm;
    const DataType type_ = GetParam().type;

    std::size_t bytes(std::size_t count) const { return count * size_of(type_); }
};

// Counts around packets, vectors and the ranks' parts; two calls each, so that banks, epochs and
// counters go on; different counts in a row, so that blocks that sat out one call take part in the
// next.
TEST_P(AllReduce, IsRightForAnyCountCallAfterCall) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kMost = 4099;
        const CUdeviceptr in = side.communicator.allocate(bytes(kMost));
        const CUdeviceptr out = side.communicator.allocate(bytes(kMost));
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, kMost, std::size_t{2},
                                        std::size_t{129}, std::size_t{1000}, std::size_t{7}}) {
            side.reduce_and_check(in, out, count, {type_}, algorithm_);
            side.reduce_and_check(in, out, count, {type_}, algorithm_);
        }
    });
}

TEST_P(AllReduce, IsRightInPlace) {
    on_ranks(ranks_, [this](Side& side) {
        const CUdeviceptr buffer = side.communicator.allocate(bytes(1025));
        for (const std::size_t count : {std::size_t{5}, std::size_t{1025}, std::size_t{64}}) {
            side.reduce_and_check(buffer, buffer, count, {type_}, algorithm_);
        }
    });
}

// One element off the alignment that vectors need, input and output each.
TEST_P(AllReduce, IsRightOnUnalignedBuffers) {
    on_ranks(ranks_, [this](Side& side) {
        const CUdeviceptr in = side.communicator.allocate(bytes(600)) + size_of(type_);
        const CUdeviceptr out = side.communicator.allocate(bytes(600)) + 3 * size_of(type_);
        side.reduce_and_check(in, out, 501, {type_}, algorithm_);
    });
}

TEST_P(AllReduce, WritesNothingBehindItsOutput) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 333;
        const CUdeviceptr in = side.communicator.allocate(bytes(kCount));
        const CUdeviceptr out = side.communicator.allocate(bytes(kCount) + 64);
        Verifier::poison(side.stream, out, bytes(kCount) + 64);
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);
        std::vector<unsigned char> behind(64);
        copy_to_host(behind.data(), out + bytes(kCount), behind.size());
        EXPECT_EQ(behind, std::vector<unsigned char>(64, 0xff));
    });
}

// All ranks must agree to the last bit, whatever the order in which packets came.
TEST_P(AllReduce, GivesEveryRankTheSameBits) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 777;
        const CUdeviceptr in = side.communicator.allocate(bytes(kCount));
        const CUdeviceptr out = side.communicator.allocate(bytes(kCount));
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);
        std::vector<std::byte> result(bytes(kCount));
        copy_to_host(result.data(), out, result.size());
        for (const auto& other : side.rank.bootstrap().allgather_bytes("result", result)) {
            EXPECT_EQ(other, result);
        }
    });
}

TEST_P(AllReduce, ReplaysAsAGraph) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 500;
        const CUdeviceptr in = side.communicator.allocate(bytes(kCount));
        const CUdeviceptr out = side.communicator.allocate(bytes(kCount));
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);  // beside calls outside it
        const Graph graph = Graph::capture(side.stream.get(), [&] {
            for (int i = 0; i < 3; ++i) {
                side.communicator.all_reduce(in, out, kCount, type_, ReduceOp::kSum,
                                             side.stream.get(), algorithm_);
            }
        });
        for (int replay = 0; replay < 3; ++replay) {
            side.verifier.fill(side.stream, {type_}, in, kCount);
            Verifier::poison(side.stream, out, bytes(kCount));
            graph.launch(side.stream.get());
            side.check(out, kCount, {type_});
        }
    });
}

INSTANTIATE_TEST_SUITE_P(All, AllReduce,
                         testing::Values(Case{1, Algorithm::kOneShot, DataType::kFloat},
                                         Case{1, Algorithm::kTwoShot, DataType::kBfloat16},
                                         Case{2, Algorithm::kOneShot, DataType::kBfloat16},
                                         Case{2, Algorithm::kTwoShot, DataType::kFloat},
                                         Case{3, Algorithm::kOneShot, DataType::kFloat},
                                         Case{3, Algorithm::kTwoShot, DataType::kBfloat16},
                                         Case{4, Algorithm::kOneShot, DataType::kBfloat16},
                                         Case{5, Algorithm::kTwoShot, DataType::kFloat},
                                         Case{7, Algorithm::kOneShot, DataType::kFloat},
                                         Case{8, Algorithm::kTwoShot, DataType::kBfloat16},
                                         Case{1, Algorithm::kCopy, DataType::kFloat},
                                         Case{2, Algorithm::kCopy, DataType::kBfloat16},
                                         Case{3, Algorithm::kCopy, DataType::kFloat},
                                         Case{4, Algorithm::kCopy, DataType::kBfloat16},
                                         Case{8, Algorithm::kCopy, DataType::kFloat},
                                         Case{1, Algorithm::kSentinel, DataType::kFloat},
                                         Case{2, Algorithm::kSentinel, DataType::kFloat},
                                         Case{3, Algorithm::kSentinel, DataType::kBfloat16},
                                         Case{4, Algorithm::kSentinel, DataType::kFloat},
                                         Case{8, Algorithm::kSentinel, DataType::kBfloat16}),
                         title);

TEST(Communicator, MixesAlgorithmsAndSizes) {
    on_ranks(3, [](Side& side) {
        const CUdeviceptr in = side.communicator.allocate(1 << 20);
        const CUdeviceptr out = side.communicator.allocate(1 << 20);
        const std::array in_turn{Algorithm::kSentinel, Algorithm::kTwoShot,
                                 has_copy(3) ? Algorithm::kCopy : Algorithm::kSentinel,
                                 Algorithm::kOneShot};
        std::size_t count = 1;
        for (std::size_t call = 0; call < 16; ++call, count = count * 3 + 1) {
            count = count > 16'000 ? 5 : count;  // 64K: the emulated limit of three ranks
            side.reduce_and_check(in, out, count, {DataType::kFloat}, in_turn.at(call % 4));
        }
    });
}

// They share flags, so they are done in turn.
TEST(Communicator, OrdersCallsOfSeveralStreams) {
    on_ranks(2, [](Side& side) {
        constexpr std::size_t kCount = 3000;
        const Stream other;
        std::vector<Verifier> verifiers;
        std::vector<CUdeviceptr> windows;
        for (int i = 0; i < 12; ++i) {
            verifiers.emplace_back(side.rank.rank(), side.rank.size());
            windows.push_back(side.communicator.allocate(kCount * sizeof(float)));
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

// In pieces where it is more than scratch memory holds, and beside windows.
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

// More than scratch memory holds, and a part of a pack at the end.
TEST(Communicator, CopiesRoundByRound) {
    for (const int ranks : {2, 3}) {
        if (!has_copy(ranks)) {
            continue;
        }
        on_ranks(ranks, [](Side& side) {
            const std::size_t count = TwoShotCopy::scratch_bytes() * 3 / 4 + 1;  // 3 rounds of 2
            const CUdeviceptr in = side.communicator.allocate(count * sizeof(float));
            const CUdeviceptr out = side.communicator.allocate(count * sizeof(float));
            for (const CUdeviceptr to : {out, in, out}) {
                side.reduce_and_check(in, to, count, {DataType::kFloat}, Algorithm::kCopy);
            }
        });
    }
}

// Every type by every operation, with each algorithm that can do it.
class Arithmetics : public testing::TestWithParam<int> {};

TEST_P(Arithmetics, AreAllRight) {
    on_ranks(GetParam(), [](Side& side) {
        constexpr std::size_t kMost = 300;
        const CUdeviceptr in = side.communicator.allocate(kMost * 8);
        const CUdeviceptr out = side.communicator.allocate(kMost * 8);
        std::size_t count = 17;
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                for (const Algorithm algorithm : {Algorithm::kOneShot, Algorithm::kSentinel,
                                                  Algorithm::kTwoShot, Algorithm::kCopy}) {
                    if (algorithm == Algorithm::kSentinel ? is_floating(type)
                        : algorithm == Algorithm::kCopy   ? has_copy(GetParam())
                                                          : true) {
                        count = count % 200 + 61;
                        const std::size_t shift = count % 3 == 0 ? size_of(type) : 0;
                        side.reduce_and_check(in + shift, count % 4 == 0 ? in + shift : out, count,
                                              {type, op}, algorithm);
                    }
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(All, Arithmetics, testing::Values(1, 2, 3, 4, 8));

// Four calls at a time, of any kind. More of them: --gtest_repeat=200 --gtest_shuffle, which draws
// others each time.
TEST(Communicator, TakesCallsOfAnyKindInAnyOrder) {
    const int ranks = is_emulated() ? 3 : std::min(device_count(), kMaxAllReduceRanks);
    const int rounds = is_emulated() ? 25 : 125;
    const auto seed = static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
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
            in.push_back(side.communicator.allocate(most + 64));
            out.push_back(side.communicator.allocate(most + 64));
            verifiers.emplace_back(side.rank.rank(), ranks);
        }
        std::mt19937 random(seed);  // the same on all ranks
        const auto drawn = [&](std::size_t below) { return random() % below; };
        for (int round = 0; round < rounds; ++round) {
            std::array<Call, kAtOnce> calls;
            for (std::size_t i = 0; i < kAtOnce; ++i) {
                Call& call = calls.at(i);
                call.arithmetic = {kDataTypes.at(drawn(kDataTypes.size())),
                                   kReduceOps.at(drawn(kReduceOps.size()))};
                const auto [type, op] = call.arithmetic;
                call.count = 1 + drawn((most >> drawn(11)) / size_of(type));
                const CUdeviceptr from = in[i] + drawn(5) * size_of(type);
                call.out = drawn(3) == 0 ? from : out[i] + drawn(5) * size_of(type);
                std::vector<Algorithm> possible{Algorithm::kAuto, Algorithm::kOneShot,
                                                Algorithm::kTwoShot};
                if (is_floating(type)) {
                    possible.push_back(Algorithm::kSentinel);
                }
                if (has_copy(ranks)) {
                    possible.push_back(Algorithm::kCopy);
                }
                const Stream& stream = drawn(2) == 0 ? side.stream : other;
                verifiers[i].fill(stream, call.arithmetic, from, call.count);
                if (call.out != from) {
                    Verifier::poison(stream, call.out, call.count * size_of(type));
                }
                side.communicator.all_reduce(from, call.out, call.count, type, op, stream.get(),
                                             possible.at(drawn(possible.size())));
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
        side.reduce_and_check(window, window, 999, {DataType::kFloat}, Algorithm::kTwoShot);
        side.communicator.release(window);
        EXPECT_THROW(side.communicator.release(window), std::invalid_argument);
        EXPECT_THROW(
            side.communicator.all_reduce(window, window, 9, DataType::kFloat, ReduceOp::kSum,
                                         side.stream.get(), Algorithm::kTwoShot),
            std::invalid_argument);
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

}  // namespace
}  // namespace symm
