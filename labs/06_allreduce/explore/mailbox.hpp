#pragma once
/// \file
/// What the scenes of algorithms with a mailbox share.

#include <fmt/core.h>

#include <vector>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/mailbox/packets.hpp"
#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/explore/calls.hpp"
#include "labs/06_allreduce/explore/overlap.hpp"
#include "tools/explore/explore_main.hpp"
#include "tools/explore/timeouts.hpp"

namespace symm {

/// Calls of an algorithm that uses a mailbox, of `kRegions` regions a bank.
template <template <class, int> class Kernel, class T,
          Collective kCollective = Collective::kAllReduce, unsigned kRegions = 1>
void through_mailbox(Scene& scene, Calls calls) {
    constexpr bool kPackets = std::is_same_v<typename Kernel<T, kMostExplored>::Format, Packets>;
    constexpr bool kHasRoot =
        kCollective == Collective::kBroadcast || kCollective == Collective::kReduce;
    const Ranks& who = calls.who;
    const unsigned per_sender = calls.other.slots;
    // With room behind, as on a GPU, where a mailbox is for many more ranks and slots.
    const std::size_t of_rank =
        std::max(std::size_t{2} * kRegions * static_cast<unsigned>(who.ranks - 1) * per_sender,
                 std::size_t{64});
    const auto slots = explore::symmetric_zeroed<simt::Pack16>(scene, who.ranks, "slots", of_rank);
    calls.collective = kCollective;
    calls.other.replaces_sentinel = calls.other.all_ones && kRegions == 2;
    for (int rank = 0; rank < who.ranks; ++rank) {
        auto* const epochs = scene.zeroed<Epochs>(1, "epochs", rank);
        std::fill(std::begin(epochs->of_block), std::end(epochs->of_block), calls.other.epoch);
        if (!kPackets) {
            std::fill_n(slots.of(rank), of_rank, simt::Pack16{{kSentinel, kSentinel}});
        }
        const simt::Timeout timeout = explore::timeout_of(scene, rank);
        const Buffers mine = buffers_of<T>(scene, calls, rank);
        const KernelParams basic = kernel_call<T>(calls, mine, rank, timeout);
        const MailboxParams call{basic, {epochs, slots, per_sender}, basic};
        using Named = std::conditional_t<kPackets, Packet, float>;
        for (unsigned region = 0; region < 2 * kRegions; ++region) {
            const unsigned bank = region / kRegions;
            for (int step = 1; step < who.ranks; ++step) {
                const int p = call.peer(step);
                const int row = static_cast<int>(region) * (who.ranks - 1) + p - (p > rank);
                auto* const slot = reinterpret_cast<Named*>(
                    slots.of(rank) + static_cast<unsigned>(row) * per_sender);
                scene.name(slot, per_sender * sizeof(simt::Pack16) / sizeof(Named),
                           fmt::format("{}(from {}, bank {})",
                                       region % kRegions == 0 ? "slot" : "result", p, bank),
                           rank);
                if constexpr (kPackets) {
                    const auto last = static_cast<std::uint32_t>(calls.counts.size());
                    const std::uint32_t flag = last % 2 == bank ? last : last - 1;
                    slot[1] = calls.other.old_packets ? Packet{1, flag, 1, flag} : Packet{};
                }
            }
        }
        if (calls.other.overlap) {
            launch_overlapping<T>(
                scene, calls, rank, timeout,
                [=](const ThreadBlock& block, std::size_t count, const Buffers& of) {
                    Call own = basic;
                    own.in = of.in;
                    own.out = of.out;
                    own.count = count;
                    Kernel<T, kMostExplored>{{basic, call, own, count}}(block);
                });
            continue;
        }
        launch_calls<T>(scene, calls, 0, rank, mine.in, mine.out, timeout,
                        [=](const ThreadBlock& block, std::size_t count) {
                            if constexpr (kHasRoot) {
                                if (count == calls.other.all_reduced) {
                                    OneShot<T, kMostExplored>{
                                        {basic, call, {{}, mine.in, mine.out, count}}}(block);
                                    return;
                                }
                            }
                            Call whole = basic;
                            whole.count = count;
                            whole.root = calls.root(count);
                            const std::size_t at_once = calls.other.at_once;
                            for (std::size_t done = 0; done < count; done += at_once) {
                                if (done != 0) {
                                    explore::kernel_end();
                                }
                                const Call piece = whole.piece(done, at_once);
                                Kernel<T, kMostExplored>{{basic, call, piece, count}}(block);
                            }
                        });
    }
}

}  // namespace symm
