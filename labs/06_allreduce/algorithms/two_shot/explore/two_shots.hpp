#pragma once
/// \file
/// Calls in two shots on windows, or of each of the two alone.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/explore/windows.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

/// Where rank p reads and writes in a rank's buffers: in its part, if they have parts.
inline Buffers seen_by(int p, const Buffers& mine, const Calls& calls, std::size_t count) {
    const std::size_t part = static_cast<std::size_t>(p) * count * sizeof(float);
    return {mine.in + (calls.parts_in() > 1 ? part : 0),
            mine.out + (calls.parts_out() > 1 ? part : 0)};
}

/// Rank p is not told of a buffer that the call does not use, nor of the root's in no window.
template <bool kRootsWindow>
void hide_unused(Buffers& seen, const CollectiveRow& row, int root, int rank, int p) {
    const bool is_seen = rank == root && (kRootsWindow || p == rank);
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
        buffers.push_back(buffers_of<float>(scene, calls, rank));
        begin_at(calls.other.epoch, *meeting.of(rank));
        begin_at(calls.other.epoch, *barrier.of(rank));
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        const TwoShotParams call{kernel_call<float>(calls, mine, rank, timeout),
                                 {meeting, rank, who.ranks, {}},
                                 {barrier, rank, who.ranks},
                                 TwoShotParams::kEvery,
                                 TwoShotParams::kEvery,
                                 !row_of(kCollective).has_parts()};
        using Kernel = TwoShot<float, kMostExplored>;
        launch_calls<float>(
            scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
            [=](const ThreadBlock& block, std::size_t count) {
                const CollectiveRow& row = row_of(kCollective);
                Kernel kernel{call};
                kernel.count = count;
                kernel.root = calls.root(count);
                kernel.source = Kernel::only(row.from, rank, kernel.root);
                kernel.target = Kernel::only(row.to, rank, kernel.root);
                for (int p = 0; p < who.ranks; ++p) {
                    kernel.rendezvous.mine[p] = seen_by(p, mine, calls, count);
                    hide_unused<kRootsWindow>(kernel.rendezvous.mine[p], row, kernel.root, rank, p);
                }
                const std::uint32_t* const epoch = &barrier.of(rank)->epoch[block.group_index()];
                const std::uint32_t before = block.thread_rank() == 0 ? *epoch : 0;
                kernel(block);
                if (block.thread_rank() == 0 && *epoch - before > 1) {
                    fail(
                        fmt::format("rank {} passes {} barriers in a call", rank, *epoch - before));
                }
            });
    }
}

}  // namespace symm
