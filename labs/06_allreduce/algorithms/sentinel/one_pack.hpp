#pragma once
/// \file
/// One shot by the sentinel for the calls in which only latency counts: sums of whole packs at
/// aligned addresses, at most one pack for each thread. The steps and their table are those of
/// sentinel.hpp. What such a call does not need is left out: loops over packs, loads of single
/// elements, the choice of the operation. On two H200s a call of 1K takes 0.2 us less.

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
        if (i < packs && !mailbox.gave_up()) {
            const auto* const from = reinterpret_cast<const T*>(in) + i * kElements;
            const simt::Pack16 own = without_sentinel(load_pack<simt::Pack16>(from));
            SYMM_UNROLL
            for (int step = 1; step < kMost; ++step) {
                if (step < ranks) {
                    mailbox.send(peer(step), i, own);
                }
            }
            simt::Pack16 pack[kMost];
            fill_with(pack, own);
            if (mailbox.receive_all(i, pack)) {
                SYMM_UNROLL
                for (int p = 0; p < kMost; ++p) {
                    if (p != rank && p < ranks) {
                        mailbox.clear(p, i);
                    }
                }
                reinterpret_cast<simt::Pack16*>(out)[i] =
                    Reduction(ReduceOp::kSum, ranks).reduce<T>(pack, ranks);
            }
        }
        mailbox.end(block, packs);
    }
};

}  // namespace symm
