// The algorithms on windows, two shots by kernels and with copies, call after call, in every
// execution.

#include <vector>

#include "common/explore/await.hpp"
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

void two_shots(Scene& scene, const Ranks& who, const Calls& calls, Shots shots) {
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back({buffer<float>(scene, "in", rank), buffer<float>(scene, "out", rank)});
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        const TwoShotCall call{{meeting, rank, who.ranks, {}},
                               {barrier, rank, who.ranks},
                               0,
                               Reduction(ReduceOp::kSum, who.ranks),
                               timeout,
                               shots};
        using Kernel = TwoShot<float, 4>;
        scene.launch(
            rank, {who.blocks, who.threads, Kernel::kSharedBytes}, [=](const ThreadBlock& block) {
                unsigned made = 0;
                make_calls<float>(
                    block, calls, rank, mine.in, mine.out, timeout, [&](std::size_t count) {
                        Kernel kernel{call};
                        kernel.count = count;
                        for (int p = 0; p < who.ranks; ++p) {
                            kernel.rendezvous.mine[p] = seen_by(p, mine, calls, count);
                        }
                        kernel(block);
                        ++made;
                        if (block.thread_rank() != 0) {
                            return;
                        }
                        const unsigned passed = barrier.of(rank)->epoch[block.group_index()];
                        if (passed > made) {
                            fail(fmt::format("rank {} passes {} barriers up to the end of call {}",
                                             rank, passed, made));
                        }
                    });
            });
    }
}

/// Chunks of one pack. No copies run, so a rank that gave up does no harm.
void chunks(Scene& scene, const Ranks& who, const Calls& calls) {
    constexpr std::size_t kSlot = 8;  // packs
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, who.ranks, "barrier");
    const auto steps = explore::symmetric<ChunksMemory>(scene, who.ranks, "chunks");
    const auto copy = explore::symmetric<CopyMemory>(scene, who.ranks, "copy");
    const auto slots = explore::symmetric<simt::Pack16>(
        scene, who.ranks, "slot", kSlot * static_cast<unsigned>(who.ranks - 1));
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back({buffer<float>(scene, "in", rank), buffer<float>(scene, "out", rank)});
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        ChunksCall call{{{meeting, rank, who.ranks, {}},
                         {barrier, rank, who.ranks},
                         0,
                         Reduction(ReduceOp::kSum, who.ranks),
                         timeout},
                        steps,
                        {copy, rank, who.ranks},
                        slots,
                        kSlot,
                        1};
        std::fill_n(call.rendezvous.mine, who.ranks, mine);
        using Kernel = TwoShotChunks<float, 4>;
        scene.launch(rank, {who.blocks, who.threads, Kernel::kSharedBytes},
                     [=](const ThreadBlock& block) {
                         make_calls<float>(block, calls, rank, mine.in, mine.out, timeout,
                                           [&](std::size_t count) {
                                               Kernel kernel{call};
                                               kernel.count = count;
                                               kernel(block);
                                           });
                     });
    }
}

/// A stream's wait for an event of another stream.
void wait_for_event(const std::uint32_t* event, std::uint32_t number) {
    const auto is_set = [&] { return simt::load(event, simt::Order::kAcquire) >= number; };
    explore::await(is_set, nullptr);
}

/// Calls of two ranks by the copy engine, as TwoShotCopy queues them. Ranks 2 and 3 stand for the
/// copy streams of ranks 0 and 1. A copy brings 16 bytes, one piece. A flag's copy begins when the
/// previous copy has arrived, so it is a release.
void copies(Scene& scene, unsigned threads, unsigned calls) {
    constexpr int kRanks = 2;
    constexpr std::uint32_t kPieces = CopyMemory::kPieces;
    constexpr std::size_t kPiece = 4;  // elements
    constexpr std::size_t kCount = kRanks * kPieces * kPiece;
    const auto begin = [](int part, std::size_t k) {
        return (static_cast<std::size_t>(part) * kPieces + k) * kPiece;
    };
    struct Slot {
        alignas(16) float element[kPieces * kPiece];
    };
    const auto meeting = explore::symmetric<RendezvousMemory>(scene, kRanks, "meeting");
    const auto barrier = explore::symmetric<BarrierMemory>(scene, kRanks, "barrier");
    const auto memory = explore::symmetric<CopyMemory>(scene, kRanks, "copy");
    const auto slots = explore::symmetric<Slot>(scene, kRanks, "slot");
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < kRanks; ++rank) {
        buffers.push_back({buffer<float>(scene, "in", rank), buffer<float>(scene, "out", rank)});
    }
    for (int rank = 0; rank < kRanks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        auto* const met = scene.allocate<std::uint32_t>(1, "met", rank);
        auto* const pushed = scene.allocate<std::uint32_t>(1, "pushed", rank);
        const CopyView view{memory, rank, kRanks};
        Rendezvous rendezvous{meeting, rank, kRanks, {}};
        std::fill_n(rendezvous.mine, kRanks, mine);
        const Calls all{std::vector<std::size_t>(calls, kCount), kRanks};
        scene.launch(rank, {.threads = threads}, [=](const ThreadBlock& block) {
            const bool first = block.thread_rank() == 0;
            std::uint32_t call = 0;
            make_calls<float>(block, all, rank, mine.in, mine.out, timeout, [&](std::size_t) {
                ++call;
                Meet{rendezvous, view, timeout}(block);
                explore::kernel_end();
                if (first) {
                    simt::store(met, call, simt::Order::kRelease);
                }
                for (std::uint32_t k = 0; k < kPieces; ++k) {
                    if (first) {
                        wait_for_event(pushed, kPieces * (call - 1) + k + 1);
                    }
                    explore::kernel_end();
                    ReducePiece<float, kRanks>{
                        {mine.in + begin(rank, k) * sizeof(float), begin(rank, k) * sizeof(float),
                         kPiece,
                         reinterpret_cast<CUdeviceptr>(slots.of(rank)->element + k * kPiece),
                         sizeof(Slot), view.local(), k, Reduction(ReduceOp::kSum, kRanks), timeout,
                         rank, kRanks}}(block);
                    explore::kernel_end();
                }
                EndOfRound{{barrier, rank, kRanks}, view, timeout}(block);
            });
        });
        scene.launch(kRanks + rank, {}, [=](const ThreadBlock&) {
            const int peer = 1 - rank;
            for (std::uint32_t call = 1; call <= calls; ++call) {
                wait_for_event(met, call);
                for (std::uint32_t k = 0; k < kPieces; ++k) {
                    for (std::size_t i = 0; i < kPiece; ++i) {
                        slots.of(peer)->element[k * kPiece + i] =
                            elements<float>(mine.in)[begin(peer, k) + i];
                    }
                    simt::store(&view.peer(peer)->flag[k][rank], view.local()->round,
                                simt::Order::kRelease);
                    simt::store(pushed, kPieces * (call - 1) + k + 1, simt::Order::kRelease);
                }
            }
        });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto two_shot = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) { two_shots(scene, who, {counts, who.ranks}, Shots::kBoth); };
    };
    const auto in_chunks = [](const Ranks& who, std::vector<std::size_t> counts) {
        return [=](Scene& scene) { chunks(scene, who, {counts, who.ranks}); };
    };
    const auto one_half = [](const Ranks& who, std::vector<std::size_t> counts,
                             Collective collective, Shots shots) {
        return [=](Scene& scene) { two_shots(scene, who, {counts, who.ranks, collective}, shots); };
    };
    const auto reduce_scatter = [&](const Ranks& who, std::vector<std::size_t> counts) {
        return one_half(who, std::move(counts), Collective::kReduceScatter, Shots::kReduceScatter);
    };
    const auto all_gather = [&](const Ranks& who, std::vector<std::size_t> counts) {
        return one_half(who, std::move(counts), Collective::kAllGather, Shots::kAllGather);
    };
    return explore::explore_main(
        argc, argv,
        {
            {"two_shot/2x1", two_shot({2}, {8, 8})},
            {"two_shot/2x1/one", two_shot({2}, {1, 1})},
            {"two_shot/2x2", two_shot({2, 2}, {16, 16})},
            {"two_shot/2x1x2", two_shot({2, 1, 2}, {16, 16})},
            {"two_shot/2x1x2/idle", two_shot({2, 1, 2}, {4, 4, 4})},
            {"chunks/2x1", in_chunks({2}, {16, 8})},
            {"chunks/2x1/one", in_chunks({2}, {1, 12})},
            {"chunks/2x2", in_chunks({2, 2}, {16, 16})},
            {"chunks/2x2/one", in_chunks({2, 2}, {1, 1})},
            {"chunks/2x1x2", in_chunks({2, 1, 2}, {16})},
            {"chunks/3x1", in_chunks({3}, {12, 12})},
            {"copy/2x1", [](Scene& scene) { copies(scene, 1, 3); }, false},
            {"copy/2x2", [](Scene& scene) { copies(scene, 2, 2); }, false},
            {"two_shot/3x1", two_shot({3}, {12, 12})},
            {"reduce_scatter/two_shot/2x1", reduce_scatter({2}, {4, 8})},
            {"reduce_scatter/two_shot/2x2", reduce_scatter({2, 2}, {8, 8})},
            {"reduce_scatter/two_shot/3x1", reduce_scatter({3}, {4, 4})},
            {"all_gather/two_shot/2x1", all_gather({2}, {4, 8})},
            {"all_gather/two_shot/2x2", all_gather({2, 2}, {8, 8})},
            {"all_gather/two_shot/3x1", all_gather({3}, {4, 4})},
        });
}
