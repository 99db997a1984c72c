// Models of faults that libraries shipped, in every execution.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "labs/05_device_prims/explore/arrivals.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/bugs_that_shipped/arrivals.hpp"
#include "labs/bugs_that_shipped/early_load.hpp"
#include "labs/bugs_that_shipped/fenced_barrier.hpp"
#include "labs/bugs_that_shipped/replayed.hpp"
#include "labs/bugs_that_shipped/ring_reduce.hpp"
#include "labs/bugs_that_shipped/rows_for_all.hpp"
#include "labs/bugs_that_shipped/staged.hpp"
#include "labs/bugs_that_shipped/symmetric_pool.hpp"
#include "labs/bugs_that_shipped/three_stages.hpp"
#include "labs/bugs_that_shipped/two_streams.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"
#include "tools/explore/unguessable.hpp"

namespace symm::bugs_that_shipped {
namespace {

using explore::Scene;
using simt::ThreadBlock;
using Word = std::uint32_t;

/// Unique to rank, call and index; never 0.
Word input(int rank, Word call, Word i = 0) {
    return explore::unguessable(rank, 10 * call + i);
}

void check_sum(int ranks, int rank, Word call, Word i, Word sum) {
    Word expected = 0;
    for (int p = 0; p < ranks; ++p) {
        expected += input(p, call, i);
    }
    if (sum != expected) {
        explore::fail(
            fmt::format("call {}: rank {} gets {} instead of {}", call, rank, sum, expected));
    }
}

// Each rank writes a word, and reads the others' after a barrier. A second one lets it write again.
void arrivals(Scene& scene, int ranks, Word calls, Word first) {
    const auto flags = explore::symmetric_zeroed<Arrivals>(scene, ranks, "flags");
    std::array<Word*, 3> words{};
    for (int rank = 0; rank < ranks; ++rank) {
        words[rank] = scene.zeroed<Word>(1, "word", rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
        for (int p = 0; p < ranks; ++p) {
            flags.of(rank)->from[p] = first;
        }
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            simt::Waiter waiter(timeout);
            const auto barrier = [&](Word number) {
                for (int p = 0; p < ranks; ++p) {
                    if (p != rank) {
                        arrive(flags.of(p), rank, number);
                    }
                }
                wait_for_all(waiter, flags.of(rank), rank, ranks, number);
            };
            for (Word call = 0; call < calls; ++call) {
                *words[rank] = input(rank, call);
                barrier(first + 2 * call + 1);
                Word sum = 0;
                for (int p = 0; p < ranks; ++p) {
                    sum += *words[p];
                }
                check_sum(ranks, rank, call, 0, sum);
                barrier(first + 2 * call + 2);
            }
            *words[rank] = 0;  // as a next call would
        });
    }
}

// A rank whose wait gave up has no sum.
void staged(Scene& scene, Word calls) {
    constexpr int kRanks = 2;
    const auto memory = explore::symmetric_zeroed<Staging>(scene, kRanks, "staging");
    for (int rank = 0; rank < kRanks; ++rank) {
        scene.name(memory.of(rank)->element, kStaged, "staged", rank);
        scene.name(memory.of(rank)->flag, kRanks, "flag", rank);
        Word* const in = scene.allocate<Word>(kStaged, "in", rank);
        Word* const out = scene.allocate<Word>(kStaged, "out", rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {.threads = kStaged}, [=](const ThreadBlock& block) {
            const unsigned t = block.thread_rank();
            for (Word call = 0; call < calls; ++call) {
                in[t] = input(rank, call, t);
                StagedOneShot{memory, in, out, timeout, rank, kRanks, call}(block);
                explore::kernel_end();
                if (!explore::gave_up(timeout)) {
                    check_sum(kRanks, rank, call, t, out[t]);
                }
            }
        });
    }
}

// Five calls, or a graph of one that is replayed.
void replayed(Scene& scene, bool in_graph) {
    constexpr unsigned kBlocks = 2;
    const auto memory = explore::symmetric_zeroed<RoundMemory>(scene, 2, "rounds", kBlocks);
    for (int rank = 0; rank < 2; ++rank) {
        for (unsigned b = 0; b < kBlocks; ++b) {
            RoundMemory& of_block = memory.of(rank)[b];
            scene.name(of_block.data, 2, fmt::format("data{}", b), rank);
            scene.name(of_block.flag, 2, fmt::format("flag{}", b), rank);
            scene.name(&of_block.round, 1, fmt::format("round{}", b), rank);
        }
        Word* const in = scene.allocate<Word>(kBlocks, "in", rank);
        Word* const out = scene.allocate<Word>(kBlocks, "out", rank);
        RoundCaller caller({memory, in, out, explore::timeout_of(scene, rank), rank});
        std::vector<RoundOneShot> kernels;
        for (int call = 0; call < 5; ++call) {
            kernels.push_back(call > 0 && in_graph ? kernels[0] : caller.next_kernel());
        }
        scene.launch(rank, {.blocks = kBlocks}, [=](const ThreadBlock& block) {
            const unsigned b = block.group_index();
            for (Word call = 0; call < kernels.size(); ++call) {
                in[b] = input(rank, call, b);
                kernels[call](block);
                explore::kernel_end();
                check_sum(2, rank, call, b, out[b]);
            }
        });
    }
}

// Call i comes from stream `streams[i]`.
void two_streams(Scene& scene, const std::vector<int>& streams) {
    const auto memory = explore::symmetric_zeroed<PushMemory>(scene, 2, "memory");
    for (int rank = 0; rank < 2; ++rank) {
        scene.name(memory.of(rank)->half, 2, "half", rank);
        scene.name(&memory.of(rank)->epoch, 1, "epoch", rank);
        Event done{scene.zeroed<Word>(1, "event", rank)};
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        PushCommunicator communicator({memory, timeout, rank, 0, nullptr}, done);
        std::array<Stream, 2> queues;
        for (Word call = 0; call < streams.size(); ++call) {
            Word* const out = scene.allocate<Word>(1, fmt::format("out{}", call), rank);
            Stream& stream = queues[streams[call]];
            communicator.all_reduce(stream, input(rank, call), out);
            stream.launch([=] { check_sum(2, rank, call, 0, *out); });
        }
        scene.launch(rank, {.blocks = 2},  // one per stream
                     [=](const ThreadBlock& block) { queues[block.group_index()].run(); });
    }
}

void three_stages(Scene& scene) {
    const auto memory = explore::symmetric_zeroed<Stages>(scene, 2, "stage");
    for (int rank = 0; rank < 2; ++rank) {
        for (Word& word : memory.of(rank)->word) {
            word = kEmpty;
        }
        const StagedMailbox mailbox{memory, explore::timeout_of(scene, rank), rank};
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            for (Word epoch = 0; epoch < 5; ++epoch) {
                Word sum = 0;
                mailbox(epoch, input(rank, epoch), &sum);
                explore::kernel_end();
                check_sum(2, rank, epoch, 0, sum);
            }
        });
    }
}

void rows_for_all(Scene& scene, int ranks) {
    const auto arrivals = explore::arrivals(scene, ranks, 1);
    std::vector<Rows*> rows;
    for (int rank = 0; rank < ranks; ++rank) {
        rows.push_back(scene.zeroed<Rows>(1, "rows", rank));
        for (auto& bank : rows.back()->row) {
            scene.name(bank, static_cast<std::size_t>(ranks), "row", rank);
        }
    }
    auto* const all_rows = scene.multicast<Rows>(rows, 1, "all rows");
    for (int rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const RowsForAll gather{rows[r], all_rows, rank, ranks};
        scene.launch(rank, {}, [=, view = arrivals[r]](const ThreadBlock& block) {
            MulticastBarrier barrier(block, view, timeout);
            for (Word epoch = 0; epoch < 3; ++epoch) {
                std::array<simt::Pack16, kMostRows> seen{};
                gather(block, barrier, epoch, {{input(rank, epoch), 10}}, seen.data());
                for (int p = 0; p < ranks && !barrier.gave_up(); ++p) {
                    const std::uint64_t row = seen.at(static_cast<std::size_t>(p)).half[0];
                    if (row != input(p, epoch)) {
                        explore::fail(fmt::format("call {}: rank {} has {} in row {}, not {}",
                                                  epoch + 1, rank, row, p, input(p, epoch)));
                    }
                }
            }
        });
    }
}

// Before the registration, and in each of two steps after it, rank 1 may have a tensor of its own.
void symmetric_pool(Scene& scene, bool unequal) {
    static_assert(SymmetricPool::kPerSegment == 2, "a segment has room for two tensors");
    const auto calls = explore::symmetric_zeroed<Calls>(scene, 2, "calls");
    for (int rank = 0; rank < 2; ++rank) {
        scene.name(&calls.of(rank)->registered, 1, "registered", rank);
        scene.name(&calls.of(rank)->reduced, 1, "reduced", rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock&) {
            Group group(calls, timeout, rank);
            SymmetricPool pool(group);
            int tensors = 0;
            const auto allocate = [&](int more) {
                const int registered = pool.registered();
                const Word before = calls.of(rank)->registered;
                const int allocated = more + (unequal ? rank : 0);
                for (int i = 0; i < allocated; ++i) {
                    pool.allocate();
                }
                tensors += allocated;
                if (pool.registered() != registered && calls.of(rank)->registered == before) {
                    explore::fail("segments count as registered that no call has registered");
                }
            };
            const auto register_all = [&] {
                const Word before = calls.of(rank)->registered;
                pool.register_all();
                const int segments =
                    (tensors + SymmetricPool::kPerSegment - 1) / SymmetricPool::kPerSegment;
                if (calls.of(rank)->registered == before) {
                    explore::fail("register_all() has made no collective call");
                }
                if (!has_reached(simt::load(&calls.of(1 - rank)->registered, simt::Order::kRelaxed),
                                 calls.of(rank)->registered)) {
                    explore::fail("register_all() has not waited for the other rank");
                }
                if (pool.registered() != segments) {
                    explore::fail(fmt::format("register_all() has registered {} of {} segments",
                                              pool.registered(), segments));
                }
            };
            allocate(SymmetricPool::kPerSegment);
            register_all();
            for (int step = 0; step < 2; ++step) {
                allocate(1);
                pool.all_reduce();
                register_all();  // in step 1 only rank 1 may have a new segment
            }
        });
    }
}

// Thread 0 is the kernel, and the others are the lanes of the rank's network card.
void ring_reduce(Scene& scene, Word calls) {
    const auto memory = explore::symmetric_zeroed<RingMemory>(scene, 2, "ring");
    for (int rank = 0; rank < 2; ++rank) {
        scene.name(memory.of(rank)->chunk, kChunks, "chunk", rank);
        Lane* const lanes = scene.zeroed<Lane>(Network::kLanes, "lane", rank);
        Word* const in = scene.allocate<Word>(kChunks, "in", rank);
        Word* const out = scene.allocate<Word>(kChunks, "out", rank);
        const RingReduce kernel{memory, in, out, explore::timeout_of(scene, rank), rank};
        scene.launch(rank, {.threads = 1 + Network::kLanes}, [=](const ThreadBlock& block) {
            const unsigned t = block.thread_rank();
            if (t > 0) {
                Network::carry(lanes[t - 1]);
                return;
            }
            Network network(lanes);
            for (Word call = 1; call <= calls; ++call) {
                for (Word c = 0; c < kChunks; ++c) {
                    in[c] = input(rank, call, c);
                }
                kernel(network, call);
                network.quiet();
                for (Word c = 0; c < kChunks; ++c) {
                    check_sum(2, rank, call, c, out[c]);
                }
            }
            network.close();
        });
    }
}

// Without kernel_end(): only the barrier orders what the ranks do.
void fenced(Scene& scene, Word calls) {
    constexpr int kRanks = 2;
    const auto memory = explore::symmetric_zeroed<MeetingMemory>(scene, kRanks, "meeting");
    for (int rank = 0; rank < kRanks; ++rank) {
        scene.name(memory.of(rank)->awaited, kMostMet, "awaited", rank);
        scene.name(memory.of(rank)->given, kMostMet, "given", rank);
        Word* const in = scene.allocate<Word>(kMostMet, "in", rank);
        Word* const out = scene.allocate<Word>(kMostMet, "out", rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const FencedOneShot kernel{memory, in, out, timeout, rank, kRanks};
        scene.launch(rank, {.threads = kMostMet}, [=](const ThreadBlock& block) {
            const unsigned t = block.thread_rank();
            for (Word call = 0; call < calls; ++call) {
                in[t] = input(rank, call, t);
                kernel(block);
                explore::kernel_end();
                if (!explore::gave_up(timeout)) {
                    check_sum(kRanks, rank, call, t, out[t]);
                }
            }
        });
    }
}

// Calls that may overlap, after a kernel that writes their inputs and the residual, and before one
// that checks. These two know nothing of that.
void layers(Scene& scene, Word calls) {
    const auto memory = explore::symmetric_zeroed<LayerMemory>(scene, 2, "slots");
    for (int rank = 0; rank < 2; ++rank) {
        scene.name(memory.of(rank)->slot[0], 2 * kLayerThreads, "slot", rank);
        Word* const in = scene.allocate<Word>(calls * kLayerThreads, "in", rank);
        Word* const weight = scene.allocate<Word>(kLayerThreads, "weight", rank);
        std::fill_n(weight, kLayerThreads, 3);
        Word* const residual = scene.allocate<Word>(kLayerThreads, "residual", rank);
        Word* const out = scene.allocate<Word>(calls * kLayerThreads, "out", rank);
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const auto write = [=](const ThreadBlock&) {
            for (Word i = 0; i < kLayerThreads; ++i) {
                residual[i] = input(rank, calls, i);
                for (Word call = 0; call < calls; ++call) {
                    in[call * kLayerThreads + i] = input(rank, call, i);
                }
            }
        };
        const auto check = [=](const ThreadBlock&) {
            for (Word i = 0; i < kLayerThreads && !explore::gave_up(timeout); ++i) {
                Word expected = input(rank, calls, i);
                for (Word call = 0; call < calls; ++call) {
                    expected += input(0, call, i) + input(1, call, i);
                    if (const Word seen = out[call * kLayerThreads + i]; seen != 3 * expected) {
                        explore::fail(fmt::format("call {}: rank {} gets {} instead of {}",
                                                  call + 1, rank, seen, 3 * expected));
                    }
                }
            }
        };
        scene.launch(rank, {}, write, LaunchOrder::kAfter);
        for (Word call = 0; call < calls; ++call) {
            const Word first = call * kLayerThreads;
            scene.launch(rank, {.threads = kLayerThreads},
                         FusedLayer{{memory, in + first, weight, residual, out + first, timeout,
                                     rank, call + 1}},
                         LaunchOrder::kDependent);
        }
        scene.launch(rank, {}, check, LaunchOrder::kAfter);
    }
}

}  // namespace
}  // namespace symm::bugs_that_shipped

int main(int argc, char** argv) {
    using namespace symm::bugs_that_shipped;
    using symm::explore::Scene;
    const auto by = [](const auto& fill, auto... sizes) {
        return [=](Scene& scene) { fill(scene, sizes...); };
    };
    return symm::explore::explore_main(
        argc, argv,
        {
            {"arrivals/2x1", by(arrivals, 2, 2, 0), false},
            {"arrivals/3x1", by(arrivals, 3, 1, 0), false},
            {"arrivals/3x1/wrap", by(arrivals, 3, 1, ~1U), false},
            {"staged/2x2", by(staged, 2), false},
            {"staged/2x2/one", by(staged, 1)},
            {"replayed/2x1x2/calls", by(replayed, false), false},
            {"replayed/2x1x2/graph", by(replayed, true), false},
            {"streams/same", by(two_streams, std::vector<int>{0, 0, 0}), false},
            {"streams/two", by(two_streams, std::vector<int>{0, 1}), false},
            {"streams/turns", by(two_streams, std::vector<int>{0, 1, 1, 0}), false},
            {"stages/2x1", three_stages, false},
            {"rows/2x1", by(rows_for_all, 2), false},
            {"rows/3x1", by(rows_for_all, 3), false, 1000},
            {"pool/equal", by(symmetric_pool, false), false},
            {"pool/unequal", by(symmetric_pool, true), false},
            {"fenced/1", by(fenced, 1)},
            {"fenced/2", by(fenced, 2), false},
            {"layers/1", by(layers, 1)},
            {"layers/3", by(layers, 3), false},
            {"puts/1", by(ring_reduce, 1), false},
            {"puts/3", by(ring_reduce, 3), false},
        });
}
