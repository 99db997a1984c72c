#pragma once
/// \file
/// One shot by the sentinel for the calls in which only latency counts: sums of whole packs at
/// aligned addresses, at most one pack for each thread. The table is that of sentinel.hpp. The
/// mailbox's README.md counts what it gains by leaving out: waits between loads, all between the
/// sum and the end of the kernel, and what such a call does not need.

#include <cstddef>

#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"

namespace symm {

/// The kernel, for at most kMost ranks.
template <class T, int kMost>
struct SentinelOfOnePack : MailboxParams {
    using Format = SentinelPacks;
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        MailboxSession<Format, kMost> mailbox(block, *this);
        const std::size_t packs = count / kElements;
        const std::size_t i = block.grid_rank();
        simt::Pack16* slots[kMost];
        SYMM_UNROLL
        for (int step = 1; step < kMost; ++step) {
            slots[step] = mailbox.slot_for(peer(step), i);  // a branch on `ranks` would cost more
        }
        simt::Pack16 own{};
        if (i < packs) {  // loads before it asks: the mailbox's loads are still on their way, too
            own = without_sentinel(
                load_pack<simt::Pack16>(reinterpret_cast<const T*>(in) + i * kElements));
        }
        const bool sends = i < packs && !mailbox.gave_up();
        if (sends) {
            SYMM_UNROLL
            for (int step = 1; step < kMost; ++step) {
                if (step < ranks) {
                    mailbox.send_to(slots[step], own);
                }
            }
        }
        mailbox.end(block, packs);  // nothing but a count: while the packs are on their way
        simt::Pack16 pack[kMost];
        fill_with(pack, own);
        if (sends && mailbox.receive_all(i, pack)) {
            reinterpret_cast<simt::Pack16*>(out)[i] =
                Reduction(ReduceOp::kSum, ranks).reduce<T>(pack, ranks);
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                if (p != rank && p < ranks) {
                    mailbox.clear(p, i);
                }
            }
        }
    }
};

}  // namespace symm
