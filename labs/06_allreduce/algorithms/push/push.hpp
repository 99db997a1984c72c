#pragma once
/// \file
/// AllReduce in two shots without barriers, for floating types in any memory: packs with the
/// sentinel (sentinel_packs.hpp) go through a mailbox twice. Rank p adds up part p. A thread of
/// rank r:
///
/// 1. First shot: sends its packs of part p to each peer p.
/// 2. Second shot: waits for its peers' packs of part r, adds up in the order of the ranks, sends
///    the result to all peers, and stores the sentinel into the slots that it has read.
/// 3. Collects the results of the peers' second shots, and stores the sentinel there, too.
///
/// README.md has the table of accesses, and the proof.

#include <cstddef>
#include <cuda/atomic>

#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"

namespace symm {

/// Packs of each rank's part, for `packs` packs in all. The last parts may have fewer, or none.
__host__ __device__ inline unsigned packs_per_part(unsigned packs, int ranks) {
    const auto parts = static_cast<unsigned>(ranks);
    return (packs + parts - 1) / parts;
}

/// The kernel, for at most kMost ranks: room for their packs in registers. Banks have two regions,
/// scatter and gather.
template <class T, int kMost>
struct Push : MailboxParams {
    using Format = SentinelPacks;
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Session mailbox(block, *this);
        const auto packs = static_cast<unsigned>((count + kElements - 1) / kElements);
        const Cut cut{packs, packs_per_part(packs, ranks)};
        const auto all = static_cast<unsigned>(block.grid_size());
        const auto first = static_cast<unsigned>(block.grid_rank());
        if (!mailbox.gave_up()) {
            for (unsigned j = first; j < cut.per_part; j += all) {
                scatter(mailbox, cut, j);
            }
            bool arrived = true;
            for (unsigned j = first; arrived && cut.has(rank, j); j += all) {
                arrived = reduce(mailbox, cut, j);
            }
            for (unsigned j = first; arrived && j < cut.per_part; j += all) {
                arrived = gather(mailbox, cut, j);
            }
        }
        mailbox.end(block, packs);
    }

private:
    static constexpr unsigned kScatter = 0;  ///< Regions of a bank.
    static constexpr unsigned kGather = 1;
    using Session = MailboxSession<Format, kMost, 2>;

    /// How a call's data is cut into parts.
    struct Cut {
        unsigned packs;
        unsigned per_part;

        /// The number of pack (p, j) in the data.
        __host__ __device__ unsigned pack(int p, unsigned j) const {
            return static_cast<unsigned>(p) * per_part + j;
        }
        __host__ __device__ bool has(int p, unsigned j) const {
            return j < per_part && pack(p, j) < packs;
        }
    };

    /// The first shot: sends packs (p, j) of all peers p.
    __host__ __device__ void scatter(const Session& mailbox, const Cut& cut, unsigned j) const {
        simt::Pack16 own[kMost];
        SYMM_UNROLL
        for (int step = 1; step < kMost; ++step) {  // all loads before the first store
            if (step < ranks && cut.has(peer(step), j)) {
                own[step] = load_own(cut.pack(peer(step), j));
            }
        }
        SYMM_UNROLL
        for (int step = 1; step < kMost; ++step) {
            const int p = peer(step);
            if (step < ranks && cut.has(p, j)) {
                mailbox.send(p, j, own[step], kScatter);
            }
        }
    }

    /// The second shot: waits for packs (rank, j) of all peers and sends the result. False if the
    /// wait gave up.
    __host__ __device__ bool reduce(Session& mailbox, const Cut& cut, unsigned j) const {
        const unsigned i = cut.pack(rank, j);
        const simt::Pack16 own = load_own(i);
        simt::Pack16 pack[kMost];
        fill_with(pack, own);
        if (!mailbox.receive(peers(), j, pack, kScatter)) {
            return false;
        }
        if (!cut.has(ranks - 2, 0)) {  // orders ranks that send each other nothing
            cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);
        }
        const simt::Pack16 result = without_sentinel(reduction.reduce<T>(pack, ranks));
        for (int step = 1; step < ranks; ++step) {
            mailbox.send(peer(step), j, result, kGather);
        }
        store_own(i, result);
        for (int step = 1; step < ranks; ++step) {  // or two calls later they pass for new ones
            mailbox.clear(peer(step), j, kScatter);
        }
        return true;
    }

    /// Collects the results (p, j) of all peers p. False if the wait gave up.
    __host__ __device__ bool gather(Session& mailbox, const Cut& cut, unsigned j) const {
        unsigned senders = 0;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p != rank && p < ranks && cut.has(p, j)) {
                senders |= 1U << p;
            }
        }
        simt::Pack16 pack[kMost];
        if (!mailbox.receive(senders, j, pack, kGather)) {
            return false;
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if ((senders >> p & 1U) != 0) {
                store_own(cut.pack(p, j), pack[p]);
                mailbox.clear(p, j, kGather);
            }
        }
        return true;
    }

    __host__ __device__ simt::Pack16 load_own(unsigned i) const {
        return load_to_send(reinterpret_cast<const T*>(in), count, i);
    }
    __host__ __device__ void store_own(unsigned i, const simt::Pack16& pack) const {
        const std::size_t at = std::size_t{i} * kElements;
        store_elements(reinterpret_cast<T*>(out) + at, pack, count - at);
    }
};

}  // namespace symm
