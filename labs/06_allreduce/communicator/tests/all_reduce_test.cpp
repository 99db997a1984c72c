#include <fmt/core.h>
#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "common/cuda/check.hpp"
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
    Collective collective = Collective::kAllReduce;
};

std::string title(const ::testing::TestParamInfo<Case>& info) {
    return fmt::format("{}_{}_{}_{}", info.param.ranks, name_of(info.param.collective),
                       name_of(info.param.algorithm), name_of(info.param.type));
}

class AllReduce : public ::testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        SYMM_NEEDS(ranks_ <= kMaxRanksOnGpus || is_emulated());  // more than kernels are for
        SYMM_NEEDS(algorithm_ != Algorithm::kCopy || has_copy(ranks_));
        SYMM_NEEDS(algorithm_ != Algorithm::kMulticast || has_switch(ranks_));
    }

    const int ranks_ = GetParam().ranks;
    const Algorithm algorithm_ = GetParam().algorithm;
    const Arithmetic what_{GetParam().type, ReduceOp::kSum, GetParam().collective};
    const std::size_t size_ = size_of(what_.type);

    /// Bytes of a call's larger buffer.
    std::size_t bytes(std::size_t count) const { return count * size_ * what_.parts(ranks_); }
    void reduce_and_check(Side& side, CUdeviceptr in, CUdeviceptr out, std::size_t count) const {
        const auto places = side.verifier.places(what_, in, out, count);
        side.reduce_and_check(places.in, places.out, count, what_, algorithm_);
    }
};

// Counts around packets, vectors and the ranks' parts. Two calls each, the second in place, so that
// banks, epochs and counters advance. Different counts in a row, so that blocks that were idle in
// one call take part in the next.
TEST_P(AllReduce, IsRightForAnyCountCallAfterCall) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kMost = 4099;
        const CUdeviceptr in = side.allocate(bytes(kMost));
        const CUdeviceptr out = side.allocate(bytes(kMost));
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, kMost, std::size_t{2},
                                        std::size_t{129}, std::size_t{1000}, std::size_t{7}}) {
            reduce_and_check(side, in, out, count);
            reduce_and_check(side, in, in, count);
        }
    });
}

TEST_P(AllReduce, WritesNothingBehindItsOutput) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 333;
        const std::size_t own =
            what_.collective == Collective::kReduceScatter ? kCount * size_ : bytes(kCount);
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(own + 64);
        Verifier::poison(side.stream, out, own + 64);
        reduce_and_check(side, in, out, kCount);
        std::vector<unsigned char> behind(64);
        copy_to_host(behind.data(), out + own, behind.size());
        EXPECT_EQ(behind, std::vector<unsigned char>(64, 0xff));
    });
}

// Among AllReduces by packets, which use the same scratch memory and epochs.
TEST_P(AllReduce, ReplaysAsAGraph) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 500;
        const Arithmetic packets{what_.type};
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount));
        const CUdeviceptr other = side.allocate(bytes(kCount));
        reduce_and_check(side, in, out, kCount);  // a call outside the graph
        const Graph graph = Graph::capture(side.stream.get(), [&] {
            for (int i = 0; i < 2; ++i) {
                side.call(in, out, kCount, what_, algorithm_);
                side.call(in, other, kCount, packets, Algorithm::kOneShot);
            }
        });
        for (int replay = 0; replay < 3; ++replay) {
            side.verifier.fill(side.stream, what_, in, kCount);
            Verifier::poison(side.stream, out, bytes(kCount));
            Verifier::poison(side.stream, other, bytes(kCount));
            graph.launch(side.stream.get());
            side.check(out, kCount, what_);
            side.check(other, kCount, packets);
        }
    });
}

/// Once by kernels and once by the copy engine: the same lines for every algorithm.
class BrokenCapture : public AllReduce {};

// An error has broken a capture, on all ranks or on one. The call that finds it broken throws, and
// those after the capture's end are right.
TEST_P(BrokenCapture, LeavesTheCommunicatorUsable) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 100;
        const CUdeviceptr in = side.allocate(bytes(kCount));
        const CUdeviceptr out = side.allocate(bytes(kCount));
        const Stream captured;
        const auto call = [&] {
            side.communicator.call({what_, in, out, kCount}, captured.get(), algorithm_);
        };
        side.rank.bootstrap().barrier("streams");
        reduce_and_check(side, in, out, kCount);
        for (const bool on_all : {true, false}) {
            if (on_all || side.rank.rank() == 0) {
                CUgraph none = nullptr;
                cu_check(cuStreamBeginCapture(captured.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                         "cuStreamBeginCapture()");
                call();
                EXPECT_NE(cuStreamSynchronize(captured.get()), CUDA_SUCCESS);
                EXPECT_THROW(call(), CudaError);
                EXPECT_EQ(cuStreamEndCapture(captured.get(), &none),
                          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
            }
            EXPECT_EQ(side.communicator.async_error(), "");
            reduce_and_check(side, in, out, kCount);
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
            side.communicator.call({what_, in, out, kCount}, stream.get(), algorithm_);
        };
        side.rank.bootstrap().barrier("streams");
        reduce_and_check(side, in, out, kCount);
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
        reduce_and_check(side, in, out, kCount);
    });
}

// Each rank calls at its own offsets. On odd ranks input and output lie in each other's window, and
// rank 1 calls in place.
TEST_P(AllReduce, IsRightAtOtherOffsets) {
    on_ranks(ranks_, [this](Side& side) {
        constexpr std::size_t kCount = 501;
        const auto r = static_cast<std::size_t>(side.rank.rank());
        const CUdeviceptr windows[2]{side.allocate(bytes(kCount) + 4096),
                                     side.allocate(bytes(kCount) + 4096)};
        for (const std::size_t unit : {size_, sizeof(simt::Pack16)}) {
            const CUdeviceptr from = windows[r % 2] + (r * 7 + 1) * unit;
            const CUdeviceptr to = r == 1 ? from : windows[1 - r % 2] + (r * 5 + 2) * unit;
            reduce_and_check(side, from, to, kCount);
            reduce_and_check(side, from, to, kCount);
        }
    });
}

// More ranks add nothing that sanitizers see: only lanes of masks, and larger kernels.
constexpr int kMostRanks = testing::kSanitized ? 3 : kMaxAllReduceRanks;

/// Every algorithm of every collective, each for a few numbers of ranks, and types in turn.
std::vector<Case> cases(bool by_copy_engine) {
    std::vector<Case> cases;
    std::size_t next = 0;
    for (const AlgorithmRow& row : algorithm_rows()) {
        if ((row.algorithm == Algorithm::kCopy) != by_copy_engine) {
            continue;
        }
        const bool halves = row.collective != Collective::kAllReduce;
        std::vector<DataType> types{DataType::kFloat, DataType::kBfloat16};
        types.push_back(row.needs.floating_only ? DataType::kDouble
                        : row.needs.in_switch   ? DataType::kInt64
                                                : DataType::kInt8);
        for (const int ranks : {1, 2, 3, 5, 8, 16}) {
            const int most = row.needs.in_switch ? 3 : kMostRanks;  // of four devices
            if (ranks <= most && !(halves && ranks == 5)) {
                cases.push_back(
                    {ranks, row.algorithm, types[next++ % types.size()], row.collective});
            }
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(ByKernels, AllReduce, ::testing::ValuesIn(cases(false)), title);
INSTANTIATE_TEST_SUITE_P(ByCopyEngine, AllReduce, ::testing::ValuesIn(cases(true)), title);
Case of_two_ranks(Case one) {
    one.ranks = 2;
    return one;
}
INSTANTIATE_TEST_SUITE_P(Once, BrokenCapture,
                         ::testing::Values(of_two_ranks(cases(false).front()),
                                           of_two_ranks(cases(true).front())),
                         title);

// Every type with every operation, by each collective and algorithm that supports it.
class Arithmetics : public ::testing::TestWithParam<int> {};

TEST_P(Arithmetics, AreAllRight) {
    on_ranks(GetParam(), [](Side& side) {
        constexpr std::size_t kMost = 300;
        const std::size_t bytes = kMost * 8 * static_cast<std::size_t>(side.rank.size());
        const CUdeviceptr in = side.allocate(bytes);
        const CUdeviceptr out = side.allocate(bytes);
        std::size_t count = 17;
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                for (const Collective collective : kCollectives) {
                    const Arithmetic what{type, op, collective};
                    if (collective != Collective::kAllReduce && side.rank.size() != 3) {
                        continue;  // as AllReduces, but for the places of their parts
                    }
                    for (const Algorithm algorithm : algorithms_of(side.rank.size(), what)) {
                        count = count % 200 + 61;
                        const CUdeviceptr from = in + (count % 3 == 0 ? size_of(type) : 0);
                        const auto places =
                            side.verifier.places(what, from, count % 4 == 0 ? from : out, count);
                        side.reduce_and_check(places.in, places.out, count, what, algorithm);
                        if (type == DataType::kFloat && collective == Collective::kAllReduce) {
                            side.reduce_and_check(in, out, 64, what, algorithm);  // whole packs
                        }
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
