// Two shots on windows, and each of the two alone, call after call, in every execution.

#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/explore/windows.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {
namespace {

/// Where rank p reads and writes in a rank's buffers: in its part, if they have parts.
Buffers seen_by(int p, const Buffers& mine, const Calls& calls, std::size_t count) {
    const std::size_t part = static_cast<std::size_t>(p) * count * sizeof(float);
    return {mine.in + (calls.parts_in() > 1 ? part : 0),
            mine.out + (calls.parts_out() > 1 ? part : 0)};
}

/// Rank p is not told of a buffer that the call does not use, nor of the root's in no window.
template <bool kRootsWindow>
void hide_unused(Buffers& seen, const CollectiveRow& row, int rank, int p) {
    const bool is_seen = rank == kRoot && (kRootsWindow || p == rank);
    seen.in = row.from != Holders::kRoot || is_seen ? seen.in : kUnseen;
    seen.out = row.to != Holders::kRoot || is_seen ? seen.out : kUnseen;
}

/// `kRootsWindow`: the root's own buffer lies in a window.
template <Collective kCollective, bool kRootsWindow = true>
void two_shots(Scene& scene, Calls calls) {
    const Ranks& who = calls.who;
    calls.collective = kCollective;
    const auto meeting = explore::symmetric_zeroed<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, who.ranks, "barrier");
    name_memory(scene, who, meeting, barrier);
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back(buffers_of(scene, calls, rank));
        begin_at(calls.other.epoch, *meeting.of(rank));
        begin_at(calls.other.epoch, *barrier.of(rank));
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        const TwoShotParams call{kernel_call<float>(kCollective, mine, rank, who.ranks, timeout),
                                 {meeting, rank, who.ranks, {}},
                                 {barrier, rank, who.ranks},
                                 TwoShotParams::only(row_of(kCollective).from, rank, kRoot),
                                 TwoShotParams::only(row_of(kCollective).to, rank, kRoot),
                                 !row_of(kCollective).has_parts()};
        using Kernel = TwoShot<float, 4>;
        launch_calls<float>(scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
                            [=](const ThreadBlock& block, std::size_t count) {
                                Kernel kernel{call};
                                kernel.count = count;
                                for (int p = 0; p < who.ranks; ++p) {
                                    kernel.rendezvous.mine[p] = seen_by(p, mine, calls, count);
                                    hide_unused<kRootsWindow>(kernel.rendezvous.mine[p],
                                                              row_of(kCollective), rank, p);
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

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    const auto two_shot = scenes_of(two_shots<Collective::kAllReduce>);
    const auto reduce_scatter = scenes_of(two_shots<Collective::kReduceScatter>);
    const auto all_gather = scenes_of(two_shots<Collective::kAllGather>);
    const auto broadcast = scenes_of(two_shots<Collective::kBroadcast>);
    const auto broadcast_alone = scenes_of(two_shots<Collective::kBroadcast, false>);
    const auto reduce = scenes_of(two_shots<Collective::kReduce>);
    const auto reduce_alone = scenes_of(two_shots<Collective::kReduce, false>);
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
            {"two_shot/2x1/unaligned", two_shot({{2}, {9, 5}, {.unaligned = true}})},
            {"two_shot/2x1x2/grids", two_shot({{2, 1, 2, true}, {16, 16, 16}})},
            {"two_shot/3x1", two_shot({{3}, {12, 12}})},
            {"two_shot/3x1/mixed", two_shot({{3}, {12, 4, 12}})},
            {"reduce_scatter/two_shot/2x1", reduce_scatter({{2}, {4, 8}})},
            {"reduce_scatter/two_shot/2x2", reduce_scatter({{2, 2}, {8, 8}})},
            {"reduce_scatter/two_shot/3x1", reduce_scatter({{3}, {4, 4}})},
            {"all_gather/two_shot/2x1", all_gather({{2}, {4, 8}})},
            {"all_gather/two_shot/2x2", all_gather({{2, 2}, {8, 8}})},
            {"all_gather/two_shot/3x1", all_gather({{3}, {4, 4}})},
            {"broadcast/two_shot/2x1", broadcast({{2}, {8, 9}})},
            {"broadcast/two_shot/2x2", broadcast({{2, 2}, {16, 16}})},
            {"broadcast/two_shot/3x1", broadcast({{3}, {12, 12}})},
            {"broadcast/two_shot/2x1/alone", broadcast_alone({{2}, {8, 9}})},
            {"broadcast/two_shot/3x1/alone", broadcast_alone({{3}, {4, 4}})},
            {"reduce/two_shot/2x1", reduce({{2}, {8, 9}})},
            {"reduce/two_shot/2x1/in_place", reduce({{2}, {8, 8}, {.in_place = true}})},
            {"reduce/two_shot/2x2", reduce({{2, 2}, {16, 16}})},
            {"reduce/two_shot/3x1", reduce({{3}, {12, 12}})},
            {"reduce/two_shot/2x1/alone", reduce_alone({{2}, {8, 9}})},
            {"reduce/two_shot/2x1/alone/unaligned",
             reduce_alone({{2}, {9, 5}, {.unaligned = true}})},
        });
}
