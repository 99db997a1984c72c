// Calls of random size, type, operation, collective, algorithm, place and stream, some of them in
// graphs, up to four at once. For 100,000 calls on GPUs: SYMM_DRIVER=native 06_allreduce_test, with
// the arguments --gtest_filter=RandomCalls.* --gtest_shuffle --gtest_repeat=80

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include "common/cuda/graph.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

constexpr std::size_t kAtOnce = 4;

/// A random call, the same on all ranks.
struct Drawn {
    Arithmetic arithmetic;
    Algorithm algorithm;
    std::size_t count;
    std::size_t in,
        out;  ///< Where its buffers begin in this call's share of the windows, in elements.
    bool in_place, in_graph;
    std::size_t stream;
};

class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }
    template <class List>
    auto one_of(const List& list) {
        return list[below(list.size())];
    }
    /// A call whose buffers fit into `room` bytes each.
    Drawn call(std::size_t room, int ranks) {
        constexpr std::size_t kMostShift = 17;
        constexpr std::size_t kMostByPackets = std::size_t{1} << 20;
        Drawn drawn{};
        drawn.arithmetic = {one_of(kDataTypes), one_of(kReduceOps), one_of(kCollectives),
                            static_cast<int>(below(static_cast<std::size_t>(ranks)))};
        std::vector<Algorithm> algorithms = algorithms_of(ranks, drawn.arithmetic);
        algorithms.push_back(Algorithm::kAuto);
        drawn.algorithm = one_of(algorithms);
        const std::size_t most =
            drawn.algorithm == Algorithm::kOneShot ? std::min(room, kMostByPackets) : room;
        std::size_t bytes = most;
        for (std::size_t halvings = below(24); halvings > 0 && bytes > 16; --halvings) {
            bytes /= 2;
        }
        const std::size_t size = size_of(drawn.arithmetic.type);
        const std::size_t limit = bytes / size - (bytes == room ? kMostShift : 0);
        const std::size_t parts = drawn.arithmetic.parts(ranks);
        drawn.count = std::max((limit - below(limit / 2)) / parts, std::size_t{1});
        drawn.in = below(kMostShift);
        drawn.out = below(kMostShift);
        drawn.in_place = below(4) == 0;
        drawn.in_graph = below(8) == 0;
        drawn.stream = below(kAtOnce - 1);
        return drawn;
    }

private:
    std::mt19937 random_;
};

TEST(RandomCalls, AreAllRight) {
    const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
    const int ranks = is_emulated() ? 3 : std::clamp(device_count(), 2, kMaxRanksOnGpus);
    const int rounds = is_emulated() ? 20 : 500;
    const std::size_t room = is_emulated() ? 16 << 10 : 16 << 20;
    on_ranks(ranks, [&](Side& side) {
        Draw draw(seed);
        const CUdeviceptr in = side.allocate(kAtOnce * room);
        const CUdeviceptr out = side.allocate(kAtOnce * room);
        const std::array<Stream, kAtOnce - 1> streams;
        std::deque<Verifier> verifiers;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            verifiers.emplace_back(side.rank.rank(), ranks);
        }
        side.rank.bootstrap().barrier("streams");
        if (has_copy(ranks)) {
            side.first_call(out, Algorithm::kCopy);
        }
        for (int round = 0; round < rounds; ++round) {
            std::vector<Drawn> calls;
            std::vector<CUdeviceptr> outputs;
            std::vector<Graph> graphs;
            for (std::size_t i = 0; i < 1 + round % kAtOnce; ++i) {
                const Drawn& call = calls.emplace_back(draw.call(room, ranks));
                const DataType type = call.arithmetic.type;
                const Stream& stream = streams.at(call.stream);
                const CUdeviceptr to = out + i * room + call.out * size_of(type);
                const auto places = verifiers[i].places(
                    call.arithmetic, call.in_place ? to : in + i * room + call.in * size_of(type),
                    to, call.count);
                outputs.push_back(places.out);
                verifiers[i].poison(stream, call.arithmetic, places.out, call.count);
                verifiers[i].fill(stream, call.arithmetic, places.in, call.count);
                const auto reduce = [&] {
                    side.communicator.call({call.arithmetic, places.in, places.out, call.count},
                                           stream.get(), call.algorithm);
                };
                if (call.in_graph && calls.size() == 1) {  // the caller orders graphs
                    graphs.push_back(Graph::capture(stream.get(), reduce));
                    graphs.back().launch(stream.get());
                    side.communicator.synchronize(stream, "the graph");
                } else {
                    reduce();
                }
            }
            side.rank.bootstrap().together("checked", [&] {
                for (std::size_t i = 0; i < calls.size(); ++i) {
                    const Stream& stream = streams.at(calls[i].stream);
                    side.communicator.synchronize(stream, "the call");
                    verifiers[i].check(stream, calls[i].arithmetic, outputs[i], calls[i].count);
                }
            });
        }
    });
}

}  // namespace
}  // namespace symm
