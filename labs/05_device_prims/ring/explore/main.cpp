// The ring's protocols, step after step, and whole rings, in every execution.

#include <fmt/core.h>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/primitives.hpp"
#include "labs/05_device_prims/ring/ring.hpp"
#include "labs/05_device_prims/ring/simple.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;
using Word = std::uint32_t;

/// A channel from one rank to the next, and both sides' counts of steps.
struct Channel {
    SendMem* send;
    RecvMem* receive;
    std::byte* slots;
    std::uint64_t* sent;
    std::uint64_t* received;
    std::uint64_t slot_bytes;

    Channel(Scene& scene, int from, int to, std::uint64_t bytes, std::uint64_t first)
        : send(scene.allocate<SendMem>(1, "head", from)),
          receive(scene.allocate<RecvMem>(1, "tail", to)),
          slots(scene.allocate<std::byte>(kSteps * bytes, "slots", to)),
          sent(scene.allocate<std::uint64_t>(1, "sent", from)),
          received(scene.allocate<std::uint64_t>(1, "received", to)),
          slot_bytes(bytes) {
        scene.name(receive->fifo, kSteps, "fifo", to);
        send->head = receive->tail = *sent = *received = first;
    }
    ConnectionEnd sender() const { return end(sent); }
    ConnectionEnd receiver() const { return end(received); }

private:
    ConnectionEnd end(std::uint64_t* step) const {
        return Connection{send, receive, step, slots, slot_bytes, 0, 1}.end(0);
    }
};

struct Shape {
    unsigned threads;
    std::uint64_t slot_bytes;
    std::size_t count;  ///< Elements of a step.
    unsigned steps;
    unsigned kernels = 1;
    std::uint64_t first = 0;  ///< The number of the first step.
};

/// Element i of step s of kernel k.
Word value_of(unsigned k, unsigned s, std::size_t i) {
    return 1000 * (k + 1) + 100 * s + static_cast<Word>(i);
}

/// Rank 0 sends, rank 1 receives.
template <class Protocol>
void steps(Scene& scene, const Shape& shape) {
    const Channel channel(scene, 0, 1, shape.slot_bytes, shape.first);
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const data = scene.allocate<Word>(shape.steps * shape.count, "data", rank);
        scene.launch(
            rank, {1, shape.threads, sizeof(typename Protocol::Shared)},
            [=](const ThreadBlock& block) {
                const bool first = block.thread_rank() == 0;
                for (unsigned k = 0; k < shape.kernels; ++k) {
                    for (unsigned s = 0; first && rank == 0 && s < shape.steps; ++s) {
                        for (std::size_t i = 0; i < shape.count; ++i) {
                            data[s * shape.count + i] = value_of(k, s, i);
                        }
                    }
                    explore::kernel_end();
                    std::uint64_t unused = 0;
                    RingEnds ends{channel.receiver(), channel.sender(), rank,
                                  1 - rank,           1 - rank,         timeout};
                    (rank == 0 ? ends.from_prev : ends.to_next).step = &unused;
                    Protocol protocol(block, ends, {ReduceOp::kSum, 2}, {},
                                      block.shared<typename Protocol::Shared>());
                    Primitives<Protocol, Word> prims(protocol);
                    for (unsigned s = 0; s < shape.steps; ++s) {
                        Word* const part = data + s * shape.count;
                        rank == 0 ? prims.send(part, shape.count) : prims.recv(part, shape.count);
                    }
                    protocol.finish();
                    explore::kernel_end();
                    if (!first || rank == 0 || explore::gave_up(timeout)) {
                        continue;
                    }
                    for (unsigned s = 0; s < shape.steps; ++s) {
                        for (std::size_t i = 0; i < shape.count; ++i) {
                            const Word seen = data[s * shape.count + i];
                            if (seen != value_of(k, s, i)) {
                                fail(fmt::format("kernel {}, step {}, element {}: {} instead of {}",
                                                 k, s, i, seen, value_of(k, s, i)));
                            }
                        }
                    }
                }
            });
    }
}

/// AllReduce calls around a ring, with `chunk` elements in each step. Direct: sums go into the next
/// rank's output, where that rank need not copy them.
template <class Protocol>
void rings(Scene& scene, int ranks, unsigned threads, std::uint64_t slot_bytes, std::size_t chunk,
           std::size_t turns, unsigned calls, bool direct = false) {
    const std::size_t count = turns * chunk * static_cast<std::size_t>(ranks);
    std::vector<Channel> channels;  // from each rank to the next
    std::vector<Word*> outputs;
    for (int rank = 0; rank < ranks; ++rank) {
        channels.emplace_back(scene, rank, (rank + 1) % ranks, slot_bytes, 0);
        outputs.push_back(scene.allocate<Word>(count, "out", rank));
    }
    const auto input = [](int rank, unsigned call, std::size_t i) {
        return static_cast<Word>(1 + static_cast<unsigned>(rank) + 10 * call + 100 * i);
    };
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const in = scene.allocate<Word>(count, "in", rank);
        Word* const out = outputs[static_cast<std::size_t>(rank)];
        DirectOutputs<Word> outs;
        if (direct) {
            outs = {out, outputs[static_cast<std::size_t>((rank + 1) % ranks)]};
        }
        const int prev = (rank + ranks - 1) % ranks;
        const Channel from = channels[static_cast<std::size_t>(prev)];
        const Channel to = channels[static_cast<std::size_t>(rank)];
        scene.launch(
            rank, {1, threads, sizeof(typename Protocol::Shared)}, [=](const ThreadBlock& block) {
                const bool first = block.thread_rank() == 0;
                for (unsigned c = 0; c < calls; ++c) {
                    for (std::size_t i = 0; first && i < count; ++i) {
                        in[i] = input(rank, c, i);
                    }
                    explore::kernel_end();
                    const RingEnds ends{from.receiver(),    to.sender(), rank, prev,
                                        (rank + 1) % ranks, timeout};
                    Protocol protocol(block, ends, {ReduceOp::kSum, ranks}, outs,
                                      block.shared<typename Protocol::Shared>());
                    const RingCall<Word> call{Collective::kAllReduce,
                                              {ReduceOp::kSum, ranks},
                                              in,
                                              out,
                                              count,
                                              chunk,
                                              0,
                                              outs};
                    Ring<Protocol, Word>(protocol, call, 0, 1, rank, ranks).run();
                    protocol.finish();
                    explore::kernel_end();
                    for (std::size_t i = 0; first && !explore::gave_up(timeout) && i < count; ++i) {
                        Word sum = 0;
                        for (int p = 0; p < ranks; ++p) {
                            sum += input(p, c, i);
                        }
                        if (out[i] != sum) {
                            fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank,
                                             c, i, out[i], sum));
                        }
                    }
                }
            });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    using AsSimple = Simple<Word, ThreadBlock>;
    using AsLL = LL<Word, ThreadBlock>;
    using AsLL128 = LL128<Word, ThreadBlock>;
    constexpr std::uint64_t kLastFlags = (std::uint64_t{1} << 32) - 9;  // 8 steps before the wrap
    const auto simple = [](const Shape& shape) {
        return [=](Scene& scene) { steps<AsSimple>(scene, shape); };
    };
    const auto ll = [](const Shape& shape) {
        return [=](Scene& scene) { steps<AsLL>(scene, shape); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"simple/1", simple({1, 128, 4, 9})},
            {"simple/2", simple({2, 128, 8, 9})},
            {"simple/1/2", simple({1, 128, 4, 5, 2})},
            {"ll/1", ll({1, 128, 2, 10})},
            {"ll/2", ll({2, 128, 4, 9})},
            {"ll/2/10", ll({2, 128, 4, 10})},
            {"ll/1/2", ll({1, 128, 2, 5, 2})},
            {"ll/1/wrap", ll({1, 128, 2, 10, 1, kLastFlags})},
            {"ll128/32",
             [](Scene& scene) {
                 steps<AsLL128>(scene, {32, 1024, 120, 9});
             },
             false},
            {"ring/simple/2x1", [](Scene& scene) { rings<AsSimple>(scene, 2, 1, 128, 4, 2, 2); }},
            {"ring/simple/3x1", [](Scene& scene) { rings<AsSimple>(scene, 3, 1, 128, 4, 1, 1); }},
            {"ring/direct/2x1",
             [](Scene& scene) { rings<AsSimple>(scene, 2, 1, 128, 4, 2, 2, true); }},
            {"ring/direct/2x2",
             [](Scene& scene) { rings<AsSimple>(scene, 2, 2, 128, 8, 1, 2, true); }},
            {"ring/direct/3x1",
             [](Scene& scene) { rings<AsSimple>(scene, 3, 1, 128, 4, 1, 1, true); }},
            {"ring/ll128/2x32", [](Scene& scene) { rings<AsLL128>(scene, 2, 32, 1024, 120, 1, 2); },
             false},
            {"ring/ll/2x1", [](Scene& scene) { rings<AsLL>(scene, 2, 1, 128, 2, 2, 2); }},
            {"ring/ll/2x2", [](Scene& scene) { rings<AsLL>(scene, 2, 2, 128, 4, 1, 2); }},
            {"ring/ll/3x1", [](Scene& scene) { rings<AsLL>(scene, 3, 1, 128, 2, 1, 2); }},
        });
}
