// Every collective, by every protocol, over both memories, on up to 8 ranks. How elements are added
// does not depend on the number of ranks, so each type and operation is tried on 2 and 3 only.

#include "labs/05_device_prims/ring/tests/ring_test.hpp"

#include <tuple>

#include "common/tests/sanitized.hpp"
#include "labs/05_device_prims/reduction/tests/extremes.hpp"

namespace symm {
namespace {

using namespace testing;
using Shape = RingSide::Shape;

class Rings : public ::testing::TestWithParam<std::tuple<int, Protocol, RingMemory>> {
protected:
    int ranks() const { return std::get<0>(GetParam()); }
    Protocol protocol() const { return std::get<1>(GetParam()); }
    bool over_peers() const { return std::get<2>(GetParam()) == RingMemory::kPeer; }

    void on_ranks(const std::function<void(RingSide&)>& body) const {
        RingOptions options;
        options.memory = std::get<2>(GetParam());
        run_ranks({ranks(), RankMode::kThread, {}}, [&](Rank& rank) {
            RingSide side(rank, options);
            body(side);
            rank.bootstrap().barrier("done");
        });
    }
};

// More than once round the eight slots. Emulated, a launch of eight ranks takes up to 0.3 s.
int launches_in_a_row(int ranks) {
    return kSanitized || (is_emulated() && ranks > 4) ? 10 : 100;
}

// A sanitizer makes a call about twenty times slower, and is not there to check arithmetic.
bool is_left_out(DataType type, ReduceOp op) {
    return kSanitized && (static_cast<int>(type) + static_cast<int>(op)) % 5 != 0;
}

class RingTypes : public Rings {};

TEST_P(RingTypes, AreReducedByEveryOperation) {
    on_ranks([&](RingSide& side) {
        std::size_t count = 37;
        for (const DataType type : kDataTypes) {
            for (const ReduceOp op : kReduceOps) {
                if (is_left_out(type, op)) {
                    continue;
                }
                count = count % 200 + 61;  // odd and even, larger and smaller than a step
                const bool direct = over_peers() && count % 2 == 0;
                side.check({Collective::kAllReduce, protocol(), type, op, count, 0, count % 3 == 0,
                            direct, count % 5});
                side.check({Collective::kReduceScatter, protocol(), type, op, count / 2 + 1, 0,
                            count % 3 == 1});
                side.check({Collective::kReduce, protocol(), type, op, count,
                            static_cast<int>(count) % ranks(), count % 3 == 2});
            }
        }
    });
}

TEST_P(Rings, MoveAnyNumberOfElements) {
    on_ranks([&](RingSide& side) {
        const auto n = static_cast<std::size_t>(ranks());
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1, 31 * n + 1,
                                        std::size_t{kSanitized ? 257 : 1733}}) {
            const int root = static_cast<int>(count % n);
            for (const bool in_place : {false, true}) {
                const auto shape = [&](Collective collective, std::size_t of) {
                    return Shape{collective, protocol(), DataType::kFloat, ReduceOp::kSum, of, root,
                                 in_place,   false,      count % 4};
                };
                side.check(shape(Collective::kAllReduce, count));
                side.check(shape(Collective::kReduceScatter, count / 8 + count % 8));
                side.check(shape(Collective::kAllGather, count / 8 + count % 8));
                side.check(shape(Collective::kBroadcast, count));
                side.check(shape(Collective::kReduce, count));
                Shape direct = shape(Collective::kAllReduce, count);
                direct.direct = over_peers();
                side.check(direct);
            }
        }
    });
}

TEST_P(Rings, StayRightOverManyLaunchesInARow) {
    on_ranks([&](RingSide& side) {
        for (const Collective collective :
             {Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast}) {
            side.check({.collective = collective,
                        .protocol = protocol(),
                        .type = DataType::kInt32,
                        .count = 150,
                        .direct = over_peers()},
                       launches_in_a_row(std::get<0>(GetParam())));
        }
    });
}

TEST(RingExtremes, ArePassedOnByEveryProtocol) {
    constexpr int kRanks = 3;
    run_ranks({kRanks, RankMode::kThread, {}}, [](Rank& rank) {
        RingCommunicator ring(rank);
        const Stream& stream = stream_of(rank);
        // Not made or freed while other ranks' kernels wait for this rank: both can wait for them.
        constexpr std::size_t kMost = 1 << 16;
        const DeviceMemory in(kMost);
        const DeviceMemory out(kMost);
        for (const Protocol protocol : kProtocols) {
            if (protocol == Protocol::kLL128 && !ring.why_no_ll128().empty()) {
                continue;
            }
            SCOPED_TRACE(name_of(protocol));
            expect_extremes(rank.rank(), kRanks, in.address(), out.address(),
                            [&](std::size_t count, DataType type, ReduceOp op) {
                                RingRequest call{Collective::kAllReduce, protocol, type, op};
                                call.count = count;
                                call.input = in.address();
                                call.output = out.address();
                                ring.queue(call, stream.get());
                                ring.synchronize(stream, "the AllReduce");
                            });
        }
        rank.bootstrap().barrier("done");
    });
}

std::string name_of_case(const ::testing::TestParamInfo<Rings::ParamType>& info) {
    const auto [ranks, protocol, memory] = info.param;
    return std::to_string(ranks) + "_ranks_" + std::string(name_of(protocol)) + "_over_" +
           std::string(name_of(memory));
}

auto over_peers(const std::vector<int>& ranks) {
    return ::testing::Combine(::testing::ValuesIn(ranks), ::testing::ValuesIn(kProtocols),
                              ::testing::Values(RingMemory::kPeer));
}
auto over_host_memory(const std::vector<int>& ranks) {
    return ::testing::Combine(::testing::ValuesIn(ranks),
                              ::testing::Values(Protocol::kSimple, Protocol::kLL),
                              ::testing::Values(RingMemory::kHost));
}

const std::vector<int> kFew = {2, 3};
const std::vector<int> kMany = kSanitized ? kFew : std::vector{1, 2, 3, 5, 8};
const std::vector<int> kSome = kSanitized ? kFew : std::vector{1, 2, 3, 8};

INSTANTIATE_TEST_SUITE_P(OverPeers, Rings, over_peers(kMany), name_of_case);
INSTANTIATE_TEST_SUITE_P(OverHostMemory, Rings, over_host_memory(kSome), name_of_case);
INSTANTIATE_TEST_SUITE_P(OverPeers, RingTypes, over_peers(kFew), name_of_case);
INSTANTIATE_TEST_SUITE_P(OverHostMemory, RingTypes, over_host_memory(kFew), name_of_case);

}  // namespace
}  // namespace symm
