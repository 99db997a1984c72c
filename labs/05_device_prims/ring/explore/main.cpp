// The ring's protocols, step after step, and whole rings, in every execution.

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/primitives.hpp"
#include "labs/05_device_prims/ring/ring.hpp"
#include "labs/05_device_prims/ring/simple.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

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
        : send(scene.zeroed<SendMem>(1, "head", from)),
          receive(scene.zeroed<RecvMem>(1, "tail", to)),
          slots(reinterpret_cast<std::byte*>(
              scene.zeroed<std::uint64_t>(kSteps * bytes / 8, "slots", to))),
          sent(scene.zeroed<std::uint64_t>(1, "sent", from)),
          received(scene.zeroed<std::uint64_t>(1, "received", to)),
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
    std::vector<std::vector<std::size_t>> kernels;  ///< Elements of each step.
    std::uint64_t first = 0;                        ///< The number of the first step.
    /// Beyond its first packet, each slot has what a long step left there before flags began again:
    /// the flags of its second use from now on.
    bool old_packets = false;
    std::uint64_t held = 0;  ///< Slots that the receiver has not given back before.
};

/// Of ten elements, all bits of the eighth are 0, and those of the ninth 1.
Word value_of(std::size_t i) {
    return i % 10 == 7 ? 0 : i % 10 == 8 ? ~Word{0} : static_cast<Word>(1000 + i);
}

/// Rank 0 sends, rank 1 receives.
template <class Protocol>
void steps(Scene& scene, const Shape& shape) {
    const Channel channel(scene, 0, 1, shape.slot_bytes, shape.first);
    channel.send->head = shape.first - shape.held;
    if constexpr (std::is_same_v<Protocol, LL<Word, ThreadBlock>>) {
        scene.name(reinterpret_cast<Packet*>(channel.slots),
                   kSteps * shape.slot_bytes / sizeof(Packet), "slots", 1);
    }
    for (std::uint64_t step = shape.first; shape.old_packets && step < shape.first + kSteps;
         ++step) {
        auto* const slot = reinterpret_cast<Packet*>(channel.sender().slot(step));
        const auto flag = static_cast<std::uint32_t>(step + kSteps + 1);
        std::fill(slot + 1, slot + shape.slot_bytes / sizeof(Packet), Packet{1, flag, 1, flag});
    }
    std::vector<std::size_t> begins = {0};  // of each kernel, in the data of all
    for (const auto& counts : shape.kernels) {
        begins.push_back(std::reduce(counts.begin(), counts.end(), begins.back()));
    }
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        auto* const data = scene.allocate<Word>(begins.back(), "data", rank);
        const auto transfer = [=](const ThreadBlock& block, const std::vector<std::size_t>& counts,
                                  Word* part) {
            std::uint64_t unused = 0;
            RingEnds ends{channel.receiver(), channel.sender(), rank, 1 - rank, 1 - rank, timeout};
            (rank == 0 ? ends.from_prev : ends.to_next).step = &unused;
            Protocol protocol(block, ends, {ReduceOp::kSum, 2}, {},
                              block.shared<typename Protocol::Shared>());
            Primitives<Protocol, Word> prims(protocol);
            for (const std::size_t count : counts) {
                rank == 0 ? prims.send(part, count) : prims.recv(part, count);
                part += count;
            }
            protocol.finish();
        };
        const auto body = [=](const ThreadBlock& block) {
            const bool first = block.thread_rank() == 0;
            for (std::size_t i = 0; first && rank == 0 && i < begins.back(); ++i) {
                data[i] = value_of(i);
            }
            for (std::size_t k = 0; k < shape.kernels.size(); ++k) {
                explore::kernel_end();
                transfer(block, shape.kernels[k], data + begins[k]);
                explore::kernel_end();
                const bool checks = first && rank == 1 && !explore::gave_up(timeout);
                for (std::size_t i = begins[k]; checks && i < begins[k + 1]; ++i) {
                    if (const Word seen = data[i]; seen != value_of(i)) {
                        fail(fmt::format("element {}: {} instead of {}", i, seen, value_of(i)));
                    }
                }
            }
        };
        scene.launch(rank, {1, shape.threads, sizeof(typename Protocol::Shared)}, body);
    }
}

/// Rank 0 passes steps on from rank 1 to rank 1, with the last credit of its kernel's start. Then
/// it waits for the next, while its other thread may still be at the end of the step before.
void relay(Scene& scene) {
    using Protocol = LL<Word, ThreadBlock>;
    constexpr std::uint64_t kFirst = 8;
    const Channel channels[] = {{scene, 0, 1, 128, kFirst + 1}, {scene, 1, 0, 128, kFirst}};
    channels[0].send->head = kFirst + 2 - kSteps;
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Channel from = channels[1 - rank];
        const Channel to = channels[rank];
        auto* const data = scene.allocate<Word>(4, "data", rank);
        std::fill_n(data, 4, Word{1});
        const unsigned threads = rank == 0 ? 2 : 1;
        scene.launch(rank, {1, threads, sizeof(Protocol::Shared)}, [=](const ThreadBlock& block) {
            const RingEnds ends{from.receiver(), to.sender(), rank, 1 - rank, 1 - rank, timeout};
            Protocol protocol(block, ends, {ReduceOp::kSum, 2}, {},
                              block.shared<Protocol::Shared>());
            Primitives<Protocol, Word> prims(protocol);
            for (int step = 0; step < 2; ++step) {
                rank == 0 ? prims.recv_copy_send(data, 4) : prims.send(data, 4);
            }
            protocol.finish();
            if (rank == 1 && !explore::gave_up(timeout)) {
                post_peer<simt::Order::kRelaxed>(&from.send->head, kFirst + 3 - kSteps);
            }
        });
    }
}

/// Lane `lane` has given up; all lines are there. All lanes must get false.
void lines(Scene& scene, unsigned lane) {
    auto* const line = scene.zeroed<simt::Pack16>(simt::kWarpSize, "line");
    std::fill_n(line, simt::kWarpSize, simt::Pack16{{1, 1}});
    const simt::Timeout timeout = explore::timeout_of(scene, 0);
    scene.launch(0, {1, simt::kWarpSize}, [=](const ThreadBlock& block) {
        const simt::Warp warp(block);
        // No other lane looks again at `gave_up`, since its line is there.
        std::optional<simt::Waiter> waiter(std::in_place, timeout);
        block.sync();
        if (block.thread_rank() == lane) {
            simt::store(timeout.gave_up, 1U, simt::Order::kRelaxed);
            waiter.emplace(timeout);
        }
        simt::Pack16 pack[1];
        if (simt::wait_for_lines(warp, *waiter, {simt::Wait::kLine, 0, 1, 1}, 1,
                                 line + block.thread_rank(), pack)) {
            fail("a lane goes on, though another has given up");
        }
    });
}

struct RingShape {
    int ranks;
    unsigned threads;
    std::size_t chunk;  ///< Elements of each step.
    std::size_t turns;
    unsigned calls;
    bool direct = false;    ///< Sums go into the next rank's output, which need not copy them.
    bool in_place = false;  ///< The input is the output.
};

/// AllReduce calls around a ring: the first, the third ... with whole chunks, the others with one
/// element less.
template <class Protocol>
void rings(Scene& scene, std::uint64_t slot_bytes, const RingShape& shape) {
    const int ranks = shape.ranks;
    const std::size_t chunk = shape.chunk;
    const std::size_t most = shape.turns * chunk * static_cast<std::size_t>(ranks);
    std::vector<Channel> channels;  // from each rank to the next
    std::vector<Word*> outputs;
    for (int rank = 0; rank < ranks; ++rank) {
        channels.emplace_back(scene, rank, (rank + 1) % ranks, slot_bytes, 0);
        outputs.push_back(scene.allocate<Word>(most, "out", rank));
    }
    const auto input = [](int rank, unsigned call, std::size_t i) {
        return static_cast<Word>(1 + static_cast<unsigned>(rank) + 10 * call + 100 * i);
    };
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        Word* const out = outputs[static_cast<std::size_t>(rank)];
        Word* const in = shape.in_place ? out : scene.allocate<Word>(most, "in", rank);
        DirectOutputs<Word> outs;
        if (shape.direct) {
            outs = {out, outputs[static_cast<std::size_t>((rank + 1) % ranks)]};
        }
        const int prev = (rank + ranks - 1) % ranks;
        const Channel from = channels[static_cast<std::size_t>(prev)];
        const Channel to = channels[static_cast<std::size_t>(rank)];
        scene.launch(
            rank, {1, shape.threads, sizeof(typename Protocol::Shared)},
            [=](const ThreadBlock& block) {
                const bool first = block.thread_rank() == 0;
                for (unsigned c = 0; c < shape.calls; ++c) {
                    const std::size_t count = most - c % 2;
                    const bool fills = first && !explore::gave_up(timeout);
                    for (std::size_t i = 0; fills && i < count; ++i) {
                        in[i] = input(rank, c, i);
                    }
                    explore::kernel_end();
                    const RingEnds ends{from.receiver(),    to.sender(), rank, prev,
                                        (rank + 1) % ranks, timeout};
                    Protocol protocol(block, ends, {ReduceOp::kSum, ranks}, outs,
                                      block.shared<typename Protocol::Shared>());
                    const RingParams<Word> call{Collective::kAllReduce,
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
                    const bool checks = first && !explore::gave_up(timeout);
                    for (std::size_t i = 0; checks && i < count; ++i) {
                        Word sum = 0;
                        for (int p = 0; p < ranks; ++p) {
                            sum += input(p, c, i);
                        }
                        if (const Word seen = out[i]; seen != sum) {
                            fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank,
                                             c + 1, i, seen, sum));
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
    constexpr std::uint64_t kFlags = std::uint64_t{1} << 32;
    using Counts = std::vector<std::size_t>;
    const auto each = [](std::size_t steps, std::size_t count) { return Counts(steps, count); };
    const Counts sizes = {8, 1, 5, 8, 0, 3, 8, 2, 1, 7};
    const auto simple = [](const Shape& shape) {
        return [=](Scene& scene) { steps<AsSimple>(scene, shape); };
    };
    const auto ll = [](const Shape& shape) {
        return [=](Scene& scene) { steps<AsLL>(scene, shape); };
    };
    const auto ll128 = [](const Shape& shape) {
        return [=](Scene& scene) { steps<AsLL128>(scene, shape); };
    };
    const auto ring = [](const RingShape& shape) {
        return [=](Scene& scene) { rings<AsSimple>(scene, 128, shape); };
    };
    const auto ring_ll = [](const RingShape& shape) {
        return [=](Scene& scene) { rings<AsLL>(scene, 128, shape); };
    };
    const auto ring_ll128 = [](const RingShape& shape) {
        return [=](Scene& scene) { rings<AsLL128>(scene, 1024, shape); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"simple/1", simple({1, 128, {each(9, 4)}})},
            {"simple/1/3p", simple({1, 128, {each(2, 12)}})},
            {"simple/2", simple({2, 128, {each(9, 8)}})},
            {"simple/2/sizes", simple({2, 128, {sizes}})},
            {"simple/1/2", simple({1, 128, {each(5, 4), each(5, 4)}})},  // kernels
            {"ll/1", ll({1, 128, {each(10, 2)}})},
            {"ll/1/credit", ll({1, 128, {each(2, 2)}, 8, false, 7})},
            {"ll/2", ll({2, 128, {each(9, 4)}})},
            {"ll/2/10", ll({2, 128, {each(10, 4)}})},
            {"ll/2/sizes", ll({2, 128, {sizes}})},
            {"ll/1/2", ll({1, 128, {each(5, 2), each(5, 2)}})},
            {"ll/1/wrap", ll({1, 128, {each(10, 2)}, kFlags - 9})},
            // Before flags that were used long ago become valid again.
            {"ll/1/old",
             ll({1, 128, {{2, 0, 0, 0, 0, 0, 0}, {2}, {4}}, kFlags / 2 - kSteps, true})},
            {"ll/2/relay", relay},
            {"ll128/32", ll128({32, 1024, {each(9, 240)}}), false},
            {"ll128/32/credit", ll128({32, 1024, {each(2, 240)}, 8, false, 7}), false},
            {"ll128/32/wrap", ll128({32, 1024, {each(2, 2)}, kFlags - 2}), false},
            {"ll128/32/sizes", ll128({32, 2048, {{240, 3, 120, 1, 0, 240, 7, 1, 240, 31}}}), false},
            {"ll128/32/gives_up", [](Scene& scene) { lines(scene, 5); }, false},
            {"ring/simple/2x1", ring({2, 1, 4, 2, 2})},
            {"ring/simple/3x1", ring({3, 1, 4, 1, 1})},
            {"ring/simple/3x1/in_place", ring({3, 1, 4, 1, 1, false, true})},
            {"ring/direct/2x1", ring({2, 1, 4, 2, 2, true})},
            {"ring/direct/2x2", ring({2, 2, 8, 1, 2, true})},
            {"ring/direct/3x1", ring({3, 1, 4, 1, 1, true})},
            {"ring/direct/3x1/in_place", ring({3, 1, 4, 1, 1, true, true})},
            {"ring/ll128/2x32", ring_ll128({2, 32, 120, 1, 2}), false},
            {"ring/ll/2x1", ring_ll({2, 1, 2, 2, 2})},
            {"ring/ll/2x2", ring_ll({2, 2, 4, 1, 2})},
            {"ring/ll/3x1", ring_ll({3, 1, 2, 1, 2})},
            {"ring/ll/3x1/in_place", ring_ll({3, 1, 2, 1, 1, false, true})},
        });
}
