// The algorithms on windows, two shots by kernels and with copies, call after call, in every
// execution.

#include <vector>

#include "common/explore/explore_main.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"
#include "labs/06_allreduce/explore/calls.hpp"

namespace symm {
namespace {

/// Where rank p reads and writes in a rank's buffers: in its part, if they have parts.
Buffers seen_by(int p, const Buffers& mine, const Calls& calls, std::size_t count) {
    const std::size_t part = static_cast<std::size_t>(p) * count * sizeof(float);
    return {mine.in + (calls.parts_in() > 1 ? part : 0),
            mine.out + (calls.parts_out() > 1 ? part : 0)};
}

Buffers buffers_of(Scene& scene, const Calls& calls, int rank) {
    const CUdeviceptr in = buffer<float>(scene, "in", rank);
    return {in, calls.other.in_place ? in : buffer<float>(scene, "out", rank)};
}

// The memory of a rank after many calls: all its epochs, and the peers' flags, are `epoch`.
void begin_at(std::uint32_t epoch, RendezvousMemory& memory) {
    for (unsigned b = 0; b < 2; ++b) {
        memory.epoch[b] = epoch;
        for (int p = 0; p < 4; ++p) {
            memory.inbox[b][p][0] = memory.inbox[b][p][1] = {0, epoch, 0, epoch};
        }
    }
}
void begin_at(std::uint32_t epoch, BarrierMemory& memory) {
    for (unsigned b = 0; b < 2; ++b) {
        memory.epoch[b] = epoch;
        std::fill_n(memory.inbox[b], 4, epoch);
    }
}

template <Collective kCollective>
void two_shots(Scene& scene, Calls calls) {
    const Ranks& who = calls.who;
    calls.collective = kCollective;
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back(buffers_of(scene, calls, rank));
        begin_at(calls.other.epoch, *meeting.of(rank));
        begin_at(calls.other.epoch, *barrier.of(rank));
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        const TwoShotCall call{kernel_call<float>(kCollective, mine, rank, who.ranks, timeout),
                               {meeting, rank, who.ranks, {}},
                               {barrier, rank, who.ranks}};
        using Kernel = TwoShot<float, 4>;
        launch_calls<float>(scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
                            [=](const ThreadBlock& block, std::size_t count) {
                                Kernel kernel{call};
                                kernel.count = count;
                                for (int p = 0; p < who.ranks; ++p) {
                                    kernel.rendezvous.mine[p] = seen_by(p, mine, calls, count);
                                }
                                const std::uint32_t* const epoch =
                                    &barrier.of(rank)->epoch[block.group_index()];
                                const std::uint32_t before = block.thread_rank() == 0 ? *epoch : 0;
                                kernel(block);
                                if (block.thread_rank() == 0 && *epoch - before > 1) {
                                    fail(fmt::format("rank {} passes {} barriers in a call", rank,
                                                     *epoch - before));
                                }
                            });
    }
}

/// No copies run, so a rank that gave up does no harm.
void chunks(Scene& scene, const Calls& calls) {
    const Ranks& who = calls.who;
    const std::uint32_t epoch = calls.other.epoch;
    constexpr std::size_t kSlot = 8;  // packs
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    const auto steps = explore::symmetric<ChunksMemory>(scene, who.ranks, "chunks");
    const auto trust = explore::symmetric<TrustMemory>(scene, who.ranks, "trust");
    const auto slots = explore::symmetric<simt::Pack16>(
        scene, who.ranks, "slot", kSlot * static_cast<unsigned>(who.ranks - 1));
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back(buffers_of(scene, calls, rank));
        begin_at(epoch, *meeting.of(rank));
        begin_at(epoch, *barrier.of(rank));
        for (unsigned b = 0; b < 2; ++b) {
            steps.of(rank)->steps[b] = epoch;
            std::fill_n(steps.of(rank)->sent[b], 4, epoch);
        }
        // Of no rank: one that has given up may still write there, as nowhere else.
        scene.name(trust.of(rank), 1, fmt::format("trust{}", rank));
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        ChunksCall call{{kernel_call<float>(calls.collective, mine, rank, who.ranks, timeout),
                         {meeting, rank, who.ranks, {}},
                         {barrier, rank, who.ranks}},
                        steps,
                        {trust, rank, who.ranks},
                        {slots, kSlot},
                        calls.other.chunk};
        std::fill_n(call.rendezvous.mine, who.ranks, mine);
        using Kernel = TwoShotChunks<float, 4>;
        launch_calls<float>(scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
                            [=](const ThreadBlock& block, std::size_t count) {
                                Kernel kernel{call};
                                kernel.count = count;
                                kernel(block);
                            });
    }
}

/// A stream's wait for an event of another stream.
void wait_for_event(const std::uint32_t* event, std::uint32_t number) {
    const auto is_set = [&] { return simt::load(event, simt::Order::kAcquire) >= number; };
    explore::await(is_set, nullptr);
}

/// Calls of two ranks by the copy engine, as TwoShotCopy queues them. Ranks 2 and 3 stand for the
/// streams of ranks 0 and 1 that push inputs, the last two for those that send sums. Parts of 12
/// elements: with three pieces, a pack for each.
void copies(Scene& scene, unsigned threads, unsigned calls, Pieces pieces, Collective collective,
            const Other& other) {
    constexpr int kRanks = 2;
    constexpr std::size_t kPart = 12;
    constexpr std::size_t kSlot = kPart / 4;  // packs
    const auto count = static_cast<std::uint32_t>(pieces.count);
    const auto piece_of = [pieces](CUdeviceptr part, std::uint32_t k) {
        return pieces.of_part({part, kPart * sizeof(float)}, static_cast<int>(k));
    };
    const bool reduces = collective != Collective::kAllGather;
    const bool gathers = collective != Collective::kReduceScatter;
    const auto barrier = explore::symmetric<BarrierMemory>(scene, kRanks, "barrier");
    const auto memory = explore::symmetric<CopyMemory>(scene, kRanks, "copy");
    const auto trust = explore::symmetric<TrustMemory>(scene, kRanks, "trust");
    const PeerSlots inputs{explore::symmetric<simt::Pack16>(scene, kRanks, "slot", kSlot), kSlot};
    const PeerSlots sums{explore::symmetric<simt::Pack16>(scene, kRanks, "sums", kSlot), kSlot};
    const auto slot_of = [](const PeerSlots& slots, int receiver, int sender) {
        return reinterpret_cast<CUdeviceptr>(slots.of(receiver, sender));
    };
    for (int rank = 0; rank < kRanks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Calls all{{kRanks},
                        std::vector<std::size_t>(
                            calls, collective == Collective::kAllReduce ? kRanks * kPart : kPart),
                        other,
                        collective};
        const Buffers mine = buffers_of(scene, all, rank);
        begin_at(other.epoch, *barrier.of(rank));
        memory.of(rank)->rounds = other.epoch;
        for (int k = 0; k < CopyMemory::kMostPieces; ++k) {
            std::fill_n(memory.of(rank)->inputs[k], kRanks, other.epoch);
            std::fill_n(memory.of(rank)->sums[k], kRanks, other.epoch);
        }
        // Events: how often they have been recorded.
        auto* const begun = scene.allocate<std::uint32_t>(1, "begun", rank);
        auto* const pushed = scene.allocate<std::uint32_t>(1, "pushed", rank);
        auto* const summed = scene.allocate<std::uint32_t>(1, "summed", rank);
        auto* const sent = scene.allocate<std::uint32_t>(1, "sent", rank);
        const int peer = 1 - rank;
        const auto part_of = [](CUdeviceptr buffer, int part) {
            return buffer + static_cast<std::size_t>(part) * kPart * sizeof(float);
        };
        const CUdeviceptr own_in = reduces ? part_of(mine.in, rank) : mine.in;
        const CUdeviceptr own_out = gathers ? part_of(mine.out, rank) : mine.out;
        scene.launch(rank, {.threads = threads}, [=](const ThreadBlock& block) {
            const bool first = block.thread_rank() == 0;
            std::uint32_t made = 0;
            const auto record = [&](std::uint32_t* event, std::uint32_t number) {
                explore::kernel_end();
                if (first) {
                    simt::store(event, number, simt::Order::kRelease);
                }
            };
            const auto wait_for = [&](const std::uint32_t* event, std::uint32_t number) {
                if (first) {
                    wait_for_event(event, number);
                }
                explore::kernel_end();
            };
            make_calls<float>(block, all, rank, mine.in, mine.out, timeout, [&](std::size_t) {
                record(begun, made + 1);
                for (std::uint32_t k = 0; k < count && reduces; ++k) {
                    wait_for(pushed, count * made + k + 1);
                    const CUdeviceptr arrived = slot_of(inputs, rank, peer);
                    ReducePiece<float, kRanks>{
                        {piece_of(own_in, k).address, piece_of(own_out, k).address,
                         piece_of(own_out, k).bytes / sizeof(float), piece_of(arrived, k).address,
                         kSlot * sizeof(simt::Pack16), memory, static_cast<int>(k),
                         Reduction(ReduceOp::kSum, kRanks), timeout, rank, kRanks}}(block);
                    record(summed, count * made + k + 1);
                }
                if (!reduces && first) {
                    std::copy_n(elements<float>(mine.in), kPart, elements<float>(own_out));
                }
                for (std::uint32_t k = 0; k < count && gathers; ++k) {
                    wait_for(sent, count * made + k + 1);
                    const BufferPart to = piece_of(part_of(mine.out, peer), k);
                    Unpack{to.address,
                           piece_of(slot_of(sums, rank, peer), k).address,
                           to.bytes,
                           memory,
                           static_cast<int>(k),
                           peer,
                           peer,
                           timeout,
                           rank}(block);
                    explore::kernel_end();
                }
                EndOfRound{{barrier, rank, kRanks}, memory, {trust, rank, kRanks}, timeout}(block);
                ++made;
            });
        });
        const auto copy = [=](const PeerSlots& slots, CUdeviceptr part, std::uint32_t k) {
            const BufferPart from = piece_of(part, k);
            std::copy_n(elements<float>(from.address), from.bytes / sizeof(float),
                        elements<float>(piece_of(slot_of(slots, peer, rank), k).address));
        };
        const auto copies_of = [&](int stream, const PeerSlots& slots, CUdeviceptr part,
                                   const std::uint32_t* after, bool each, std::uint32_t* done) {
            scene.launch(stream, {}, [=](const ThreadBlock&) {
                for (std::uint32_t i = 0; i < calls * count; ++i) {
                    wait_for_event(after, each ? i + 1 : i / count + 1);
                    copy(slots, part, i % count);
                    simt::store(done, i + 1, simt::Order::kRelease);
                }
            });
        };
        if (reduces) {
            copies_of(kRanks + rank, inputs, part_of(mine.in, peer), begun, false, pushed);
        }
        if (gathers) {
            copies_of((reduces ? 2 : 1) * kRanks + rank, sums, reduces ? own_out : mine.in,
                      reduces ? summed : begun, reduces, sent);
        }
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto two_shot = scenes_of(two_shots<Collective::kAllReduce>);
    const auto reduce_scatter = scenes_of(two_shots<Collective::kReduceScatter>);
    const auto all_gather = scenes_of(two_shots<Collective::kAllGather>);
    const auto in_chunks = scenes_of(chunks);
    const auto by_copies = [](unsigned threads, unsigned calls, int pieces, Collective collective,
                              const Other& other = {}) {
        return [=](Scene& scene) { copies(scene, threads, calls, {pieces}, collective, other); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"two_shot/2x1", two_shot({{2}, {8, 8}})},
            {"two_shot/2x1/one", two_shot({{2}, {1, 1}})},
            {"two_shot/2x2", two_shot({{2, 2}, {16, 16}})},
            {"two_shot/2x1x2", two_shot({{2, 1, 2}, {16, 16}})},
            {"two_shot/2x1x2/idle", two_shot({{2, 1, 2}, {4, 4, 4}})},
            {"two_shot/2x1/mixed", two_shot({{2}, {12, 4, 8}})},
            {"two_shot/2x1/wrap", two_shot({{2}, {8, 8, 8}, {~1U}})},
            {"two_shot/2x1/in_place", two_shot({{2}, {8, 8}, {.in_place = true}})},
            {"two_shot/2x1x2/grids", two_shot({{2, 1, 2, true}, {16, 16, 16}})},
            {"chunks/2x1", in_chunks({{2}, {16, 8}})},
            {"chunks/2x1/one", in_chunks({{2}, {1, 12}})},
            {"chunks/2x1/steps", in_chunks({{2}, {63, 8}, {.chunk = 5}})},
            {"chunks/2x1/wrap", in_chunks({{2}, {16, 8}, {~1U}})},
            {"chunks/2x1/in_place", in_chunks({{2}, {16, 5}, {.in_place = true}})},
            {"chunks/2x1x2/grids", in_chunks({{2, 1, 2, true}, {16, 16, 16}}), false},
            {"chunks/2x2", in_chunks({{2, 2}, {16, 16}})},
            {"chunks/2x2/one", in_chunks({{2, 2}, {1, 1}})},
            {"chunks/2x1x2", in_chunks({{2, 1, 2}, {16}})},
            {"chunks/3x1", in_chunks({{3}, {12, 12}})},
            {"chunks/3x1/mixed", in_chunks({{3}, {12, 4, 12}}), false},
            {"copy/2x1", by_copies(1, 2, 2, Collective::kAllReduce), false},
            {"copy/2x1/pieces", by_copies(1, 1, 3, Collective::kAllReduce), false},
            {"copy/2x1/wrap", by_copies(1, 2, 2, Collective::kAllReduce, {~0U}), false},
            {"copy/2x1/in_place", by_copies(1, 1, 2, Collective::kAllReduce, {.in_place = true}),
             false},
            {"copy/2x2", by_copies(2, 2, 2, Collective::kAllReduce), false},
            {"reduce_scatter/copy/2x1", by_copies(1, 3, 2, Collective::kReduceScatter), false},
            {"all_gather/copy/2x1", by_copies(1, 3, 2, Collective::kAllGather), false},
            {"two_shot/3x1", two_shot({{3}, {12, 12}})},
            {"two_shot/3x1/mixed", two_shot({{3}, {12, 4, 12}})},
            {"reduce_scatter/two_shot/2x1", reduce_scatter({{2}, {4, 8}})},
            {"reduce_scatter/two_shot/2x2", reduce_scatter({{2, 2}, {8, 8}})},
            {"reduce_scatter/two_shot/3x1", reduce_scatter({{3}, {4, 4}})},
            {"all_gather/two_shot/2x1", all_gather({{2}, {4, 8}})},
            {"all_gather/two_shot/2x2", all_gather({{2, 2}, {8, 8}})},
            {"all_gather/two_shot/3x1", all_gather({{3}, {4, 4}})},
        });
}
