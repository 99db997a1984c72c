#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/graph.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

struct Case {
    int ranks;
    Algorithm algorithm;
    DataType type;
};

std::string title(const ::testing::TestParamInfo<Case>& info) {
    return fmt::format("{}_{}_{}", info.param.ranks, name_of(info.param.algorithm),
                       name_of(info.param.type));
}

class AllReduce : public ::testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        if (ranks_ > kMaxRanksOnGpus && !is_emulated()) {
            GTEST_SKIP() << "no GPU kernel is compiled for so many ranks";
        }
        if (algorithm_ == Algorithm::kCopy && !has_copy(ranks_)) {
            GTEST_SKIP() << "each rank needs its own GPU";
        }
    }

    const int ranks_ = GetParam().ranks;
    const Algorithm algorithm_ = GetParam().algorithm;
    const DataType type_ = GetParam().type;

    std::size_t bytes(std::size_t count) const { return count * size_of(type_); }
};

// Counts around packets, vectors and the ranks' parts. Two calls each, so that banks, epochs and
// counters advance. Different counts in a row, so that blocks that were idle in one call take part
// in the next.
TEST_P(AllReduce, IsRightForAnyCountCallAfterCall) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kMost = 4099;
        const CUdeviceptr in = side.allocate(bytes(kMost));
        const CUdeviceptr out = side.allocate(bytes(kMost));
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, kMost, std::size_t{2},
                                        std::size_t{129}, std::size_t{1000}, std::size_t{7}}) {
            side.reduce_and_check(in, out, count, {type_}, algorithm_);
            side.reduce_and_check(in, out, count, {type_}, algorithm_);
        }
    });
}

TEST_P(AllReduce, IsRightInPlace) {
    on_ranks(ranks_, [this](Side& side) {
        const CUdeviceptr buffer = side.allocate(bytes(1025));
        for (const std::size_t count : {std::size_t{5}, std::size_t{1025}, std::size_t{64}}) {
            side.reduce_and_check(buffer, buffer, count, {type_}, algorithm_);
        }
    });
}

// Input and output are each one element off the alignment that vectors need.
TEST_P(AllReduce, IsRightOnUnalignedBuffers) {
    on_ranks(ranks_, [this](Side& side) {
        const CUdeviceptr in = side.allocate(bytes(600)) + size_of(type_);
        const CUdeviceptr out = side.allocate(bytes(600)) + 3 * size_of(type_);
        side.reduce_and_check(in, out, 501, {type_}, algorithm_);
    });
}

TEST_P(AllReduce, WritesNothingBehindItsOutput) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 333;
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount) + 64);
        Verifier::poison(side.stream, out, bytes(kCount) + 64);
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);
        std::vector<unsigned char> behind(64);
        copy_to_host(behind.data(), out + bytes(kCount), behind.size());
        EXPECT_EQ(behind, std::vector<unsigned char>(64, 0xff));
    });
}

// All ranks must agree to the last bit, whatever the order in which packets arrive.
TEST_P(AllReduce, GivesEveryRankTheSameBits) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 777;
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount));
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
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount));
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);  // a call outside the graph
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

// While a stream is captured, a call on another stream follows the earlier calls, or fails before
// any of it is queued.
TEST_P(AllReduce, IsInOrderBesideACapture) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 100;
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount));
        const Stream captured;
        const auto call = [&](const Stream& stream) {
            side.communicator.all_reduce(in, out, kCount, type_, ReduceOp::kSum, stream.get(),
                                         algorithm_);
        };
        side.rank.bootstrap().barrier("streams");
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);
        const Graph first = Graph::capture(captured.get(), [&] {
            call(captured);
            if (algorithm_ == Algorithm::kCopy) {
                EXPECT_THROW(call(side.stream), std::invalid_argument);
            } else {
                call(side.stream);
            }
        });
        call(captured);
        side.communicator.synchronize(captured, "the call");
        const Graph second = Graph::capture(
            captured.get(), [&] { EXPECT_THROW(call(side.stream), std::invalid_argument); });
        side.reduce_and_check(in, out, kCount, {type_}, algorithm_);
    });
}

// Each rank calls at its own offsets. On odd ranks input and output lie in each other's window, and
// rank 1 calls in place.
class AllReduceAtOtherOffsets : public AllReduce {};

TEST_P(AllReduceAtOtherOffsets, IsRight) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 500;
        const auto r = static_cast<std::size_t>(side.rank.rank());
        const std::size_t room = bytes(kCount) + 4096;
        CUdeviceptr in = side.communicator.allocate(room);
        CUdeviceptr out = side.communicator.allocate(room);
        if (r % 2 == 1) {
            std::swap(in, out);
        }
        for (const std::size_t unit : {size_of(type_), sizeof(simt::Pack16)}) {
            const CUdeviceptr from = in + (r * 7 + 1) * unit;
            const CUdeviceptr to = r == 1 ? from : out + (r * 5 + 2) * unit;
            side.reduce_and_check(from, to, kCount, {type_}, algorithm_);
            side.reduce_and_check(from, to, kCount, {type_}, algorithm_);
        }
    });
}

// More ranks add nothing that sanitizers see: only lanes of masks, and larger kernels.
constexpr int kMostRanks = testing::kSanitized ? 3 : kMaxAllReduceRanks;

std::vector<Case> with_ranks_to(int most, std::span<const Case> cases) {
    std::vector<Case> chosen;
    std::ranges::copy_if(cases, std::back_inserter(chosen),
                         [most](const Case& one) { return one.ranks <= most; });
    return chosen;
}

constexpr std::array<Case, 28> kByKernels{{
    {1, Algorithm::kOneShot, DataType::kFloat},    {1, Algorithm::kTwoShot, DataType::kBfloat16},
    {2, Algorithm::kOneShot, DataType::kBfloat16}, {2, Algorithm::kTwoShot, DataType::kFloat},
    {3, Algorithm::kOneShot, DataType::kFloat},    {3, Algorithm::kTwoShot, DataType::kBfloat16},
    {4, Algorithm::kOneShot, DataType::kBfloat16}, {5, Algorithm::kTwoShot, DataType::kFloat},
    {7, Algorithm::kOneShot, DataType::kFloat},    {8, Algorithm::kTwoShot, DataType::kBfloat16},
    {16, Algorithm::kOneShot, DataType::kFloat},   {16, Algorithm::kTwoShot, DataType::kFloat},
    {16, Algorithm::kSentinel, DataType::kFloat},  {1, Algorithm::kSentinel, DataType::kFloat},
    {2, Algorithm::kSentinel, DataType::kFloat},   {3, Algorithm::kSentinel, DataType::kBfloat16},
    {4, Algorithm::kSentinel, DataType::kFloat},   {8, Algorithm::kSentinel, DataType::kBfloat16},
    {2, Algorithm::kPush, DataType::kBfloat16},    {3, Algorithm::kPush, DataType::kFloat},
    {4, Algorithm::kPush, DataType::kBfloat16},    {5, Algorithm::kPush, DataType::kDouble},
    {8, Algorithm::kPush, DataType::kFloat},       {1, Algorithm::kChunks, DataType::kFloat},
    {2, Algorithm::kChunks, DataType::kBfloat16},  {3, Algorithm::kChunks, DataType::kFloat},
    {8, Algorithm::kChunks, DataType::kBfloat16},  {16, Algorithm::kChunks, DataType::kFloat},
}};

constexpr std::array<Case, 6> kByCopyEngine{{
    {16, Algorithm::kCopy, DataType::kFloat},
    {1, Algorithm::kCopy, DataType::kFloat},
    {2, Algorithm::kCopy, DataType::kBfloat16},
    {3, Algorithm::kCopy, DataType::kFloat},
    {4, Algorithm::kCopy, DataType::kBfloat16},
    {8, Algorithm::kCopy, DataType::kFloat},
}};

INSTANTIATE_TEST_SUITE_P(ByKernels, AllReduce,
                         ::testing::ValuesIn(with_ranks_to(kMostRanks, kByKernels)), title);
INSTANTIATE_TEST_SUITE_P(ByCopyEngine, AllReduce,
                         ::testing::ValuesIn(with_ranks_to(kMostRanks, kByCopyEngine)), title);
INSTANTIATE_TEST_SUITE_P(ByKernels, AllReduceAtOtherOffsets,
                         ::testing::ValuesIn(with_ranks_to(kMostRanks, kByKernels)), title);
INSTANTIATE_TEST_SUITE_P(ByCopyEngine, AllReduceAtOtherOffsets,
                         ::testing::ValuesIn(with_ranks_to(kMostRanks, kByCopyEngine)), title);

// Every type with every operation, by each algorithm that supports it.
class Arithmetics : public ::testing::TestWithParam<int> {};

TEST_P(Arithmetics, AreAllRight) {
    on_ranks(GetParam(), [](Side& side) {
        constexpr std::size_t kMost = 300;
        const CUdeviceptr in = side.allocate(kMost * 8);
        const CUdeviceptr out = side.allocate(kMost * 8);
        std::size_t count = 17;
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                for (const Algorithm algorithm :
                     {Algorithm::kOneShot, Algorithm::kSentinel, Algorithm::kPush,
                      Algorithm::kTwoShot, Algorithm::kChunks, Algorithm::kCopy}) {
                    if (is_floating_only(algorithm)     ? is_floating(type)
                        : algorithm == Algorithm::kCopy ? has_copy(GetParam())
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

INSTANTIATE_TEST_SUITE_P(All, Arithmetics,
                         ::testing::ValuesIn(testing::kSanitized ? std::vector{2, 3}
                                                                 : std::vector{1, 2, 3, 4, 8}));

}  // namespace
}  // namespace symm
