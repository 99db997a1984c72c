// Calls by the copy engine, one after another, in every execution.

#include <array>
#include <utility>
#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/algorithms/copy/copy_order.hpp"
#include "labs/06_allreduce/explore/windows.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

/// A stream's wait for an event of another stream.
void wait_for_event(const std::uint32_t* event, std::uint32_t number) {
    const auto is_set = [&] { return simt::load(event, simt::Order::kAcquire) >= number; };
    explore::await(is_set, nullptr);
}

constexpr int kEvents = kSummed + CopyMemory::kMostPieces;

/// A stream's way through the steps that the host queues, round after round.
struct StreamSteps {
    CopyStream stream;
    std::array<std::uint32_t, kEvents> recorded{};  ///< How often each event has been so far.

    /// Calls `run(step, number)` for the stream's own steps of a round. `number`: how often the
    /// step's event has been recorded, on any stream, when the host queues the step.
    template <class Run>
    void round(Collective collective, int rank, int ranks, int pieces, const Run& run) {
        for_copy_steps(collective, rank, ranks, pieces, [&](const CopyStep& step) {
            std::uint32_t& number = recorded.at(static_cast<std::size_t>(step.event));
            number += step.what == CopyStep::What::kRecord ? 1 : 0;
            if (step.stream == stream) {
                run(step, number);
            }
        });
    }
};

/// Calls by the copy engine, as Copy queues them. After the ranks, others stand for their
/// streams that push inputs, and for those that send sums. Parts of 12 elements: with three pieces,
/// a pack for each.
void copies(Scene& scene, const Ranks& who, unsigned calls, Pieces pieces, Collective collective,
            const Other& other) {
    constexpr int kMost = 3;
    const int ranks = who.ranks;
    const auto peers = static_cast<std::uint32_t>(ranks - 1);
    constexpr std::size_t kPart = 12;
    constexpr std::size_t kSlot = kPart / 4;  // packs
    const auto count = static_cast<std::uint32_t>(pieces.count);
    const auto piece_of = [pieces](CUdeviceptr part, int k) {
        return pieces.of_part({part, kPart * sizeof(float)}, k);
    };
    const bool reduces = collective != Collective::kAllGather;
    const bool gathers = collective != Collective::kReduceScatter;
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, ranks, "barrier");
    const auto memory = explore::symmetric_zeroed<CopyMemory>(scene, ranks, "copy");
    const auto trust = explore::symmetric_zeroed<TrustMemory>(scene, ranks, "trust");
    const PeerSlots inputs{explore::symmetric<simt::Pack16>(scene, ranks, "slot", kSlot * peers),
                           kSlot};
    const PeerSlots sums{explore::symmetric<simt::Pack16>(scene, ranks, "sums", kSlot * peers),
                         kSlot};
    name_inboxes(scene, barrier, ranks, 1, "barrier", &BarrierMemory::inbox);
    name_inboxes(scene, memory, ranks, count, "input flag", &CopyMemory::inputs, "piece");
    name_inboxes(scene, memory, ranks, count, "sum flag", &CopyMemory::sums, "piece");
    const auto slot_of = [](const PeerSlots& slots, int receiver, int sender) {
        return reinterpret_cast<CUdeviceptr>(slots.of(receiver, sender));
    };
    for (int rank = 0; rank < ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Calls all{
            {ranks},
            std::vector<std::size_t>(
                calls, collective == Collective::kAllReduce ? (peers + 1) * kPart : kPart),
            other,
            collective};
        const Buffers mine = buffers_of<float>(scene, all, rank);
        for (const auto& [slots, name] : {std::pair(inputs, "slot"), std::pair(sums, "sums")}) {
            scene.name(reinterpret_cast<float*>(slots.memory.of(rank)), kPart * peers, name, rank);
        }
        begin_at(other.epoch, *barrier.of(rank));
        memory.of(rank)->rounds = other.epoch;
        scene.name(&memory.of(rank)->rounds, 1, "rounds", rank);
        scene.name(barrier.of(rank)->epoch, 1, "barrier epoch", rank);
        for (int k = 0; k < CopyMemory::kMostPieces; ++k) {
            std::fill_n(memory.of(rank)->inputs[k], ranks, other.epoch);
            std::fill_n(memory.of(rank)->sums[k], ranks, other.epoch);
        }
        // How often each event has been recorded.
        auto* const events = scene.zeroed<std::uint32_t>(kEvents, "event", rank);
        scene.name(events + kBegun, 1, "begun", rank);
        scene.name(events + kPushed, 1, "pushed", rank);
        scene.name(events + kSent, 1, "sent", rank);
        scene.name(events + kSummed, CopyMemory::kMostPieces, "summed", rank);
        const auto part_of = [](CUdeviceptr buffer, int part) {
            return buffer + static_cast<std::size_t>(part) * kPart * sizeof(float);
        };
        const CUdeviceptr own_in = reduces ? part_of(mine.in, rank) : mine.in;
        const CUdeviceptr own_out = gathers ? part_of(mine.out, rank) : mine.out;
        scene.launch(rank, {who.blocks, who.threads}, [=](const ThreadBlock& block) {
            const bool first = block.grid_rank() == 0;
            StreamSteps steps{CopyStream::kCaller};
            const auto reduce = [&](int k) {
                const CUdeviceptr arrived = slot_of(inputs, rank, rank == 0 ? 1 : 0);
                ReducePiece<float, kMost>{
                    {piece_of(own_in, k).address, piece_of(own_out, k).address,
                     piece_of(own_out, k).bytes / sizeof(float), piece_of(arrived, k).address,
                     kSlot * sizeof(simt::Pack16), memory, k, Reduction(ReduceOp::kSum, ranks),
                     timeout, rank, ranks}}(block);
            };
            const auto unpack = [&](int k, int to, int from) {
                const BufferPart piece = piece_of(part_of(mine.out, from), k);
                Unpack{piece.address,
                       piece_of(slot_of(sums, rank, from), k).address,
                       piece.bytes,
                       memory,
                       k,
                       to,
                       from,
                       timeout,
                       rank}(block);
                explore::kernel_end();
            };
            const auto run = [&](const CopyStep& step, std::uint32_t number) {
                std::uint32_t* const event = events + step.event;
                switch (step.what) {
                    case CopyStep::What::kRecord:
                        explore::kernel_end();
                        return first ? simt::store(event, number, simt::Order::kRelease) : void();
                    case CopyStep::What::kWait:
                        if (first) {
                            wait_for_event(event, number);
                        }
                        return block.grid_size() > 1 ? explore::kernel_end() : void();
                    case CopyStep::What::kReduce:
                        return reduce(step.piece);
                    case CopyStep::What::kKeep:
                        if (first) {
                            std::copy_n(elements<float>(mine.in), kPart, elements<float>(own_out));
                        }
                        return;
                    case CopyStep::What::kUnpack:
                        return unpack(step.piece, step.to, step.from);
                    case CopyStep::What::kEnd:
                        if (block.group_index() == 0) {  // its grid has one block
                            EndOfRound{
                                {barrier, rank, ranks}, memory, {trust, rank, ranks}, timeout}(
                                block);
                        }
                        return;
                    default:
                        return fail("a copy in the caller's stream");
                }
            };
            make_calls<float>(block, all, rank, mine.in, mine.out, timeout, [&](std::size_t) {
                steps.round(collective, rank, ranks, pieces.count, run);
            });
        });
        const auto copy = [=](const PeerSlots& slots, int to, CUdeviceptr part, int k) {
            const BufferPart from = piece_of(part, k);
            std::copy_n(elements<float>(from.address), from.bytes / sizeof(float),
                        elements<float>(piece_of(slot_of(slots, to, rank), k).address));
        };
        const auto launch_copies = [&](int at, CopyStream stream) {
            scene.launch(at, {}, [=](const ThreadBlock&) {
                const auto run = [&](const CopyStep& step, std::uint32_t number) {
                    std::uint32_t* const event = events + step.event;
                    switch (step.what) {
                        case CopyStep::What::kRecord:
                            return simt::store(event, number, simt::Order::kRelease);
                        case CopyStep::What::kWait:
                            return wait_for_event(event, number);
                        case CopyStep::What::kPush:
                            return copy(inputs, step.to, part_of(mine.in, step.to), step.piece);
                        case CopyStep::What::kSend:
                            return copy(sums, step.to, reduces ? own_out : mine.in, step.piece);
                        default:
                            return fail("a kernel in a stream of copies");
                    }
                };
                StreamSteps steps{stream};
                for (unsigned c = 0; c < calls; ++c) {
                    steps.round(collective, rank, ranks, pieces.count, run);
                }
            });
        };
        if (reduces) {
            launch_copies(ranks + rank, CopyStream::kInputs);
        }
        if (gathers) {
            launch_copies((reduces ? 2 : 1) * ranks + rank, CopyStream::kSums);
        }
    }
}

/// The end of a round where waits may give up: the copies of the next one run all the same, into
/// slots that the peer may still be reading (peer_slots.hpp). Each copies a round's number.
void ends(Scene& scene) {
    constexpr int kRanks = 2;
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, kRanks, "barrier");
    const auto memory = explore::symmetric_zeroed<CopyMemory>(scene, kRanks, "copy");
    const auto trust = explore::symmetric_zeroed<TrustMemory>(scene, kRanks, "trust");
    // Of no rank, as trust: a rank that has given up still writes there.
    auto* const slots = scene.allocate<std::uint32_t>(kRanks, "slot");
    for (int rank = 0; rank < kRanks; ++rank) {
        scene.name(trust.of(rank), 1, fmt::format("trust{}", rank));
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        scene.launch(rank, {}, [=](const ThreadBlock& block) {
            const auto copy = [&](std::uint32_t round) {
                simt::store(&slots[1 - rank], round, simt::Order::kRelaxed);
                explore::kernel_end();
            };
            copy(1);
            const ReducePieceParams no_data{
                0, 0, 0, 0, 0, memory, 0, Reduction(ReduceOp::kSum, kRanks), timeout, rank, kRanks};
            ReducePiece<float, kRanks>{no_data}(block);
            const std::uint32_t read = simt::load(&slots[rank], simt::Order::kRelaxed);
            explore::kernel_end();
            EndOfRound{{barrier, rank, kRanks}, memory, {trust, rank, kRanks}, timeout}(block);
            explore::kernel_end();
            copy(2);
            if (!explore::gave_up(timeout) && read != 1) {
                fail(fmt::format("rank {} used data of round {} in round 1", rank, read));
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto by_copies = [](const Ranks& who, unsigned calls, int pieces, Collective collective,
                              const Other& other = {}) {
        return [=](Scene& scene) { copies(scene, who, calls, {pieces}, collective, other); };
    };
    return explore::explore_main(
        argc, argv,
        {
            {"copy/2x1", by_copies({2}, 2, 2, Collective::kAllReduce), false},
            {"copy/2x1/pieces", by_copies({2}, 1, 3, Collective::kAllReduce), false},
            {"copy/2x1/wrap", by_copies({2}, 2, 2, Collective::kAllReduce, {~0U}), false},
            {"copy/2x1/in_place", by_copies({2}, 1, 2, Collective::kAllReduce, {.in_place = true}),
             false},
            {"copy/2x2", by_copies({2, 2}, 2, 2, Collective::kAllReduce), false},
            {"copy/ends/2x1", ends},
            {"reduce_scatter/copy/2x1", by_copies({2}, 3, 2, Collective::kReduceScatter), false},
            {"all_gather/copy/2x1", by_copies({2}, 3, 2, Collective::kAllGather), false},
            {"reduce_scatter/copy/2x1x2", by_copies({2, 1, 2}, 2, 2, Collective::kReduceScatter),
             false},
            {"all_gather/copy/2x1x2", by_copies({2, 1, 2}, 2, 2, Collective::kAllGather), false},
            {"reduce_scatter/copy/3x1", by_copies({3}, 1, 1, Collective::kReduceScatter), false},
            {"all_gather/copy/3x1", by_copies({3}, 1, 1, Collective::kAllGather), false},
        });
}
