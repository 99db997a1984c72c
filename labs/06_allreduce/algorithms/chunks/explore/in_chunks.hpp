#pragma once
/// \file
/// Calls in chunks.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/chunks/chunks.hpp"
#include "labs/06_allreduce/explore/windows.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

/// Whether a wait of this rank has given up. A rank that fails because it was told may be silent.
inline bool must_tell(const simt::Timeout& timeout) {
    return explore::gave_up(timeout) && timeout.report->waiting.what != simt::Wait::kTrust;
}

/// Of all calls: a larger call is made in pieces.
inline std::uint32_t launches(const Calls& calls) {
    std::size_t all = 0;
    for (const std::size_t count : calls.counts) {
        all += (count + calls.other.at_once - 1) / calls.other.at_once;
    }
    return static_cast<std::uint32_t>(all);
}

/// No copies run, so a rank that gave up does no harm.
struct InChunks {
    unsigned chunk = 1;  ///< Packs.
    bool unpacks = false;
    std::uint32_t lag = 0;  ///< How far the flags of the inbox that is used less are behind.
    /// The next call is the copy engine's, which meets nobody before it stores into its peers'
    /// slots.
    bool then_copies = false;
    /// A call of so few elements, or fewer, is made in two shots without chunks.
    std::size_t two_shots_up_to = 0;
    /// Block 0 of rank 1 ends, then a peer tells the rank that it gave up, then block 1 begins.
    bool told_late = false;
};

template <int kMost>
void chunks_of(Scene& scene, const Calls& calls, const InChunks& how) {
    const Ranks& who = calls.who;
    const std::uint32_t epoch = calls.other.epoch;
    constexpr std::size_t kSlot = 9;  // packs
    const auto meeting = explore::symmetric_zeroed<RendezvousMemory>(scene, who.ranks, "meeting");
    const auto barrier = explore::symmetric_zeroed<BarrierMemory>(scene, who.ranks, "barrier");
    name_memory(scene, who, meeting, barrier);
    const auto steps = explore::symmetric_zeroed<ChunksMemory>(scene, who.ranks, "chunks");
    name_inboxes(scene, steps, who.ranks, who.blocks, "sent", &ChunksMemory::sent);
    name_inboxes(scene, steps, who.ranks, who.blocks, "shared", &ChunksMemory::shared);
    const auto trust = explore::symmetric_zeroed<TrustMemory>(scene, who.ranks, "trust");
    const std::size_t in_slots = kSlot * static_cast<unsigned>(who.ranks - 1);
    const auto slots = explore::symmetric<simt::Pack16>(scene, who.ranks, "slot", in_slots);
    const auto sums = explore::symmetric<simt::Pack16>(scene, who.ranks, "sum slot", in_slots);
    std::vector<Buffers> buffers;
    for (int rank = 0; rank < who.ranks; ++rank) {
        buffers.push_back(buffers_of<float>(scene, calls, rank));
        begin_at(epoch, *meeting.of(rank));
        begin_at(epoch, *barrier.of(rank));
        for (unsigned b = 0; b < 2; ++b) {
            steps.of(rank)->steps[b] = epoch;
            steps.of(rank)->shares[b] = epoch - how.lag;
            std::fill_n(steps.of(rank)->sent[b], kMostExplored, epoch);
            std::fill_n(steps.of(rank)->shared[b], kMostExplored, epoch - how.lag);
        }
        scene.name(steps.of(rank)->steps, who.blocks, "steps", rank);
        scene.name(steps.of(rank)->shares, who.blocks, "shares", rank);
        // Of no rank: one that has given up may still write there, as nowhere else.
        scene.name(trust.of(rank), 1, fmt::format("trust{}", rank));
        scene.name(steps.of(rank)->turns.begin, 4, "begin", rank);
        scene.name(steps.of(rank)->turns.ended, 4, "ended", rank);
        scene.name(reinterpret_cast<float*>(slots.of(rank)), 4 * in_slots, "slot", rank);
        scene.name(reinterpret_cast<float*>(sums.of(rank)), 4 * in_slots, "sum slot", rank);
    }
    for (int rank = 0; rank < who.ranks; ++rank) {
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers[static_cast<std::size_t>(rank)];
        ChunksParams call{{kernel_call<float>(calls, mine, rank, timeout),
                           {meeting, rank, who.ranks, {}},
                           {barrier, rank, who.ranks}},
                          steps,
                          {trust, rank, who.ranks},
                          {slots, kSlot},
                          {sums, kSlot},
                          0,
                          how.chunk,
                          how.unpacks};
        using Kernel = Chunks<float, kMost>;
        auto* const told = scene.zeroed<std::uint32_t>(1, "told", rank);
        const bool is_told = how.told_late && rank == 1;
        launch_calls<float>(
            scene, calls, Kernel::kSharedBytes, rank, mine.in, mine.out, timeout,
            [=](const ThreadBlock& block, std::size_t count) {
                Call whole = call;
                whole.count = count;
                if (is_told && block.group_index() == 1) {
                    explore::await([=] { return simt::load(told, simt::Order::kAcquire) != 0; },
                                   nullptr);
                }
                const bool is_cut = calls.collective == Collective::kAllReduce;
                for (std::size_t done = 0; done < count; done += calls.other.at_once) {
                    if (done != 0) {
                        explore::kernel_end();
                    }
                    Kernel kernel{call};
                    static_cast<Call&>(kernel) = whole.piece(done, calls.other.at_once);
                    kernel.part_bytes = is_cut ? 0 : count * sizeof(float);
                    for (int p = 0; p < who.ranks; ++p) {
                        const std::size_t part = static_cast<std::size_t>(p) * kernel.part_bytes;
                        kernel.rendezvous.mine[p] = {
                            kernel.in + (calls.parts_in() > 1 ? part : 0),
                            kernel.out + (calls.parts_out() > 1 ? part : 0)};
                    }
                    if (count <= how.two_shots_up_to) {
                        TwoShot<float, kMost>{static_cast<const TwoShotParams&>(kernel)}(block);
                    } else {
                        kernel(block);
                    }
                }
                if (is_told && block.group_index() == 0) {
                    signal(&trust.of(rank)->gave_up[0], 1);
                    signal(told, 1);
                }
                if (who.two_grids) {
                    return;
                }
                explore::kernel_end();
                if (is_told && !explore::gave_up(timeout)) {
                    fail("a block trusts a rank that has told that it gave up");
                }
                if (how.then_copies && block.grid_rank() == 0) {
                    std::fill_n(slots.of((rank + 1) % who.ranks), in_slots, simt::Pack16{});
                }
                // After the last call: only the end of a kernel would order this check, which no
                // protocol makes, before a peer's turn in the next call.
                const bool last = meeting.of(rank)->epoch[0] == epoch + launches(calls);
                const TurnsMemory& turns = steps.of(rank)->turns;
                for (int t = 0; last && t < TurnsMemory::kMost && !explore::gave_up(timeout); ++t) {
                    if (turns.begin[t] != 0 || turns.ended[t] != 0) {
                        fail(fmt::format("rank {} leaves turn {} begun", rank, t));
                    }
                }
                for (int p = 0; p < who.ranks && must_tell(timeout); ++p) {
                    if (simt::load(&trust.of(p)->gave_up[rank], simt::Order::kRelaxed) == 0) {
                        fail(fmt::format("rank {} gave up and has not told {}", rank, p));
                    }
                }
            });
    }
}

inline void chunks(Scene& scene, const Calls& calls, const InChunks& how) {
    calls.who.ranks <= 2 ? chunks_of<2>(scene, calls, how)
                         : chunks_of<kMostExplored>(scene, calls, how);
}

}  // namespace symm
