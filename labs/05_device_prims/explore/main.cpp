// The signal, the packet, both barriers and work in shared memory, in every execution.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/explore/arrivals.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/05_device_prims/explore/work_batches.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"
#include "labs/05_device_prims/ll_packet.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;
using simt::Wait;

// A number goes back and forth. Each side adds one to it, and signals.
void signals(Scene& scene, std::uint32_t rounds, std::uint32_t before_wrap) {
    auto* const number = scene.zeroed<std::uint64_t>(1, "number");
    std::uint32_t* const flags[] = {scene.zeroed<std::uint32_t>(1, "flag", 0),
                                    scene.zeroed<std::uint32_t>(1, "flag", 1)};
    for (int rank = 0; rank < 2; ++rank) {
        auto* const mine = flags[rank];
        auto* const peers = flags[1 - rank];
        *mine = 0 - before_wrap;
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            simt::Waiter waiter(timeout);
            for (std::uint32_t i = 0; i < rounds; ++i) {
                const std::uint32_t round = i + 1 - before_wrap;
                const auto wait = [&] {
                    if (wait_signal(waiter, mine, {Wait::kSignal, rank, 1 - rank, round})) {
                        return true;
                    }
                    if (wait_signal(waiter, mine, {Wait::kSignal, rank, 1 - rank, round - i - 1})) {
                        fail("a rank that gave up finds what it waits for, and goes on");
                    }
                    return false;
                };
                if (rank == 1 && !wait()) {
                    return;
                }
                const std::uint64_t expected = 2 * i + static_cast<std::uint64_t>(rank);
                if (*number != expected) {
                    fail(fmt::format("the number is {} instead of {}", *number, expected));
                }
                *number = expected + 1;
                signal(peers, round);
                if (rank == 0 && !wait()) {
                    return;
                }
            }
        });
    }
}

// A packet goes to rank 1, and one comes back: the credit to use the slot again. Their data grows
// by `by` in each round.
void packets(Scene& scene, std::uint32_t rounds, std::uint32_t first, std::uint32_t by = 10) {
    const auto slot = explore::symmetric_zeroed<Packet>(scene, 2, "slot");
    for (int rank = 0; rank < 2; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            simt::Waiter waiter(timeout);
            for (std::uint32_t round = first; round != first + rounds; ++round) {
                const std::uint64_t part = by * (round - first + 1);  // and twice that
                const std::uint64_t sent = part | (2 * part) << 32;
                if (rank == 0) {
                    write_packet(slot.of(1), sent, round);
                }
                std::uint64_t data = 0;
                if (!read_packet(waiter, slot.of(rank), {Wait::kPacket, rank, 1 - rank, round},
                                 data)) {
                    return;
                }
                if (data != sent) {
                    fail(fmt::format("the packet brings {} and {} instead of {} and {}",
                                     data & 0xffffffff, data >> 32, part, 2 * part));
                }
                if (rank == 1) {
                    write_packet(slot.of(0), sent, round);
                }
            }
        });
    }
}

struct Meetings {
    int ranks;
    unsigned threads = 1, blocks = 1, rounds = 2, kernels = 1;
    std::uint32_t before_wrap = 0;
};

// In each round every thread writes a word for each peer, and reads the words written for it.
// `views`: the ranks' barriers, each a `Meeting`.
template <class Meeting, class View>
void meet(Scene& scene, const Meetings& meetings, const std::vector<View>& views) {
    struct Boxes {
        std::uint64_t word[2][4][4][8];  // [round][sender][block][thread]
    };
    const auto [ranks, threads, blocks, rounds, kernels, before_wrap] = meetings;
    const auto boxes = explore::symmetric_zeroed<Boxes>(scene, ranks, "box");
    for (int at = 0; at < ranks * ranks; ++at) {
        for (unsigned b = 0; b < 2 * blocks; ++b) {
            scene.name(boxes.of(at / ranks)->word[b % 2][at % ranks][b / 2], threads,
                       fmt::format("box{}(from {})", b % 2, at % ranks), at / ranks);
        }
    }
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const View view = views[static_cast<std::size_t>(rank)];
        scene.launch(
            rank, {.blocks = blocks, .threads = threads},
            [=, all = meetings](const ThreadBlock& block) {
                const unsigned b = block.group_index();
                const unsigned t = block.thread_rank();
                for (unsigned k = 0; k < all.kernels; ++k) {
                    const bool was_well = !explore::gave_up(timeout);
                    bool complete = was_well;
                    explore::kernel_end();
                    Meeting barrier(block, view, timeout);
                    for (unsigned i = 0; complete && i < all.rounds; ++i) {
                        const auto word = [&](int sender) { return 100 * k + 10 * i + sender + 1; };
                        const unsigned box = (all.kernels * k + i) % 2;
                        for (int p = 0; p < all.ranks; ++p) {
                            if (p != rank) {
                                boxes.of(p)->word[box][rank][b][t] = word(rank);
                            }
                        }
                        complete = barrier.arrive_and_wait();
                        for (int p = 0; complete && p < all.ranks; ++p) {
                            const std::uint64_t seen =
                                boxes.of(rank)->word[box][p][b][(t + 1) % all.threads];
                            if (p != rank && seen != word(p)) {
                                fail(fmt::format("after barrier {} rank {} reads {} instead of {}",
                                                 i + 1, rank, seen, word(p)));
                            }
                        }
                    }
                    if (complete) {
                        barrier.store_epoch();
                    } else if (!was_well && barrier.arrive_and_wait()) {
                        fail("a rank that gave up passes a barrier");
                    }
                    explore::kernel_end();
                }
            });
    }
}

void barriers(Scene& scene, const Meetings& meetings) {
    const auto& [ranks, threads, blocks, rounds, kernels, before_wrap] = meetings;
    const auto memory = explore::symmetric_zeroed<BarrierMemory>(scene, ranks, "barrier");
    name_inboxes(scene, memory, ranks, blocks, "inbox", &BarrierMemory::inbox);
    std::vector<BarrierView> views;
    for (int rank = 0; rank < ranks; ++rank) {
        BarrierMemory& mine = *memory.of(rank);
        scene.name(mine.epoch, blocks, "epoch", rank);
        for (unsigned b = 0; b < blocks; ++b) {
            mine.epoch[b] = 0 - before_wrap;
            std::fill_n(mine.inbox[b], ranks, 0 - before_wrap);
        }
        views.push_back({memory, rank, ranks});
    }
    meet<Barrier>(scene, meetings, views);
}

void multicast_barriers(Scene& scene, const Meetings& meetings) {
    meet<MulticastBarrier>(
        scene, meetings,
        explore::arrivals(scene, meetings.ranks, meetings.blocks, 0 - meetings.before_wrap));
}

// Rank 1 sends a word and a signal to two of rank 0's three threads, once in each round. All three
// go on or leave together, and the answer stays the same.
void leave_together(Scene& scene, std::uint32_t rounds) {
    constexpr unsigned kThreads = 3;
    auto* const flags = scene.zeroed<std::uint32_t>(2, "flag", 0);
    auto* const words = scene.zeroed<std::uint64_t>(2 * rounds, "word", 0);
    auto* const goes_on = scene.zeroed<std::uint64_t>(kThreads * rounds, "goes_on", 0);
    auto* const notes = scene.zeroed<std::uint64_t>(2 * kThreads, "notes", 0);
    const simt::Timeout timeout = explore::timeout_of(scene, 0);
    const simt::Timeout senders = explore::timeout_of(scene, 1);
    scene.launch(0, {.threads = kThreads}, [=](const ThreadBlock& block) {
        const unsigned t = block.thread_rank();
        simt::Waiter waiter(timeout);
        AbortBarrier all(block);
        bool before = true;
        for (std::uint32_t round = 1; round <= rounds; ++round) {
            bool arrived = true;
            if (before && t < 2) {
                arrived = wait_signal(waiter, &flags[t], {Wait::kSignal, 0, 1, round});
            }
            std::uint64_t* const of_round = notes + round % 2 * kThreads;
            of_round[t] = round;
            const bool well = all.sync(arrived);
            if (well && !before) {
                fail("a thread goes on, though the block has left");
            }
            if (of_round[(t + 1) % kThreads] != round) {
                fail("a thread does not see what another one wrote before the sync");
            }
            for (unsigned i = 0; well && i < 2; ++i) {
                const std::uint64_t word = words[2 * (round - 1) + i];
                if (word != 10 * round + i) {
                    fail(fmt::format("thread {} reads {} in round {}, in word {}", t, word, round,
                                     i));
                }
            }
            before = well;
            goes_on[kThreads * (round - 1) + t] = well ? 1 : 0;
        }
        explore::kernel_end();
        for (std::uint32_t i = 0; t == 0 && i < kThreads * rounds; ++i) {
            if (goes_on[i] != goes_on[i / kThreads * kThreads]) {
                fail(fmt::format("in round {} some threads go on, and others leave",
                                 i / kThreads + 1));
            }
        }
    });
    scene.launch(1, {}, [=](const ThreadBlock&) {
        simt::Waiter waiter(senders);
        for (std::uint32_t round = 1; round <= rounds && !waiter.gave_up(); ++round) {
            for (unsigned i = 0; i < 2; ++i) {
                words[2 * (round - 1) + i] = 10 * round + i;
                signal(&flags[i], round);
            }
        }
    });
}

// The latency test's kernels, each `launches` times, of `rounds` rounds. They count errors.
template <class Kernel>
void latency(Scene& scene, const std::vector<Kernel>& of_ranks, unsigned threads, unsigned launches,
             LatencyMemory* (*memory)(const Kernel&)) {
    for (const Kernel& of_rank : of_ranks) {
        scene.launch(of_rank.rank, {.threads = threads}, [=](const ThreadBlock& block) {
            Kernel kernel = of_rank;
            for (unsigned i = 0; i < launches && !explore::gave_up(kernel.timeout); ++i) {
                kernel(block);
                kernel.first += kernel.rounds;
                explore::kernel_end();
            }
            if (block.thread_rank() == 0 && memory(kernel)->errors != 0) {
                fail("another payload has arrived");
            }
        });
    }
}

void ping_pong(Scene& scene, Carrier carrier) {
    const auto memory = explore::symmetric_zeroed<LatencyMemory>(scene, 2, "memory");
    std::vector<PingPong> kernels;
    for (int rank = 0; rank < 2; ++rank) {
        kernels.push_back({memory.of(rank), memory.of(1 - rank), explore::timeout_of(scene, rank),
                           carrier, rank, 1 - rank, 1, 2});
    }
    latency<PingPong>(scene, kernels, 1, 2, [](const PingPong& one) { return one.local; });
}

void barrier_rounds(Scene& scene, int ranks, unsigned threads) {
    const auto memory = explore::symmetric_zeroed<LatencyMemory>(scene, ranks, "memory");
    std::vector<BarrierRounds> kernels;
    for (int rank = 0; rank < ranks; ++rank) {
        kernels.push_back({memory, rank, ranks, explore::timeout_of(scene, rank), 0, 1});
    }
    latency<BarrierRounds>(scene, kernels, threads, 3,
                           [](const BarrierRounds& one) { return one.memory.of(one.rank); });
}

struct alignas(16) Words {
    std::uint64_t word[2];
};

// A block of `threads` threads loads its communicator, its channel and its first items.
void load_args_of(Scene& scene, unsigned threads) {
    using State = BlockState<Words, Words, Item, 2>;
    auto* const words = scene.zeroed<Words>(2, "words", 0);
    words[0] = {{1, 2}};
    words[1] = {{3, 4}};
    scene.launch(
        0, {.threads = threads, .shared_bytes = sizeof(State)}, [=](const ThreadBlock& block) {
            WorkBatch<Item> batch{2, 0, 0, 1, nullptr, nullptr, {}};
            batch.args[0] = {{5, 6}};
            batch.args[1] = {{7, 8}};
            auto& state = *block.shared<State>();
            load_args(block, state, &words[0], &words[1], batch);
            const std::uint64_t seen[] = {state.comm.word[0],      state.comm.word[1],
                                          state.channel.word[0],   state.channel.word[1],
                                          state.work[0].number[0], state.work[0].number[1],
                                          state.work[1].number[0], state.work[1].number[1]};
            for (std::uint64_t i = 0; i < std::size(seen); ++i) {
                if (seen[i] != i + 1) {
                    fail(fmt::format("word {} is {}", i, seen[i]));
                }
            }
        });
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto meeting = [](void (*fill)(Scene&, const Meetings&), const Meetings& meetings) {
        return [=](Scene& scene) { fill(scene, meetings); };
    };
    const auto work = [](const Batches& batches) {
        return [=](Scene& scene) { work_batches<2>(scene, batches); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"signal", [](Scene& scene) { signals(scene, 3, 0); }},
            {"signal/wrap", [](Scene& scene) { signals(scene, 3, 2); }},
            {"packet", [](Scene& scene) { packets(scene, 3, 1); }},
            {"packet/high", [](Scene& scene) { packets(scene, 3, 0x80000001); }},
            {"packet/zero", [](Scene& scene) { packets(scene, 3, 1, 0); }},   // as data
            {"packet/flags", [](Scene& scene) { packets(scene, 3, 1, 1); }},  // data as flags
            {"barrier/2x1", meeting(barriers, {2})},
            {"multicast_barrier/2x1", meeting(multicast_barriers, {2})},
            {"barrier/2x2", meeting(barriers, {2, 2})},
            {"multicast_barrier/2x2", meeting(multicast_barriers, {2, 2})},
            {"barrier/2x2/2", meeting(barriers, {2, 2, 1, 2, 2})},  // kernels
            {"multicast_barrier/2x2/2", meeting(multicast_barriers, {2, 2, 1, 2, 2})},
            {"barrier/2x2x2", meeting(barriers, {2, 2, 2})},
            {"multicast_barrier/2x2x2", meeting(multicast_barriers, {2, 2, 2}), true, 1000},
            {"barrier/2x1/wrap", meeting(barriers, {2, 1, 1, 3, 1, 2})},
            {"multicast_barrier/2x1/wrap", meeting(multicast_barriers, {2, 1, 1, 3, 1, 2})},
            {"barrier/3x1", meeting(barriers, {3})},
            {"multicast_barrier/3x1", meeting(multicast_barriers, {3}), true, 1000},
            {"multicast_barrier/3x1/wrap", meeting(multicast_barriers, {3, 1, 1, 2, 2, 2}), true,
             500},
            {"barrier/3x2", meeting(barriers, {3, 2})},
            {"multicast_barrier/3x2", meeting(multicast_barriers, {3, 2}), true, 1000},
            {"barrier/4x1", meeting(barriers, {4}), false},
            {"multicast_barrier/4x1", meeting(multicast_barriers, {4}), false, 1000},
            {"abort_barrier", [](Scene& scene) { leave_together(scene, 3); }},
            {"ping_pong/signal", [](Scene& scene) { ping_pong(scene, Carrier::kSignal); }},
            {"ping_pong/relaxed", [](Scene& scene) { ping_pong(scene, Carrier::kRelaxed); }},
            {"ping_pong/packet", [](Scene& scene) { ping_pong(scene, Carrier::kPacket); }},
            {"rounds/2x1", [](Scene& scene) { barrier_rounds(scene, 2, 1); }},
            {"rounds/2x2", [](Scene& scene) { barrier_rounds(scene, 2, 2); }},
            {"rounds/3x1", [](Scene& scene) { barrier_rounds(scene, 3, 1); }},
            {"load_args/2", [](Scene& scene) { load_args_of(scene, 2); }},
            {"load_args/64", [](Scene& scene) { load_args_of(scene, 64); }},
            {"load_args/96", [](Scene& scene) { load_args_of(scene, 96); }},
            {"work_fifo/1", work({.threads = 1, .first = 2})},
            {"work_fifo/2", work({.threads = 2, .first = 2})},
            // The ring ends between items that are loaded together; the numbers wrap.
            {"work_fifo/2/end", work({.threads = 2, .first = 0xfffffff7})},
            {"work_fifo/2/leave", work({.threads = 2, .first = 2, .left = 1})},
            {"work_fifo/2/wrap", work({.threads = 2, .first = 0xfffffffe})},
        });
}
