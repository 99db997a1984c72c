#pragma once
/// \file
/// AllReduce in two shots without barriers: packs with the sentinel, pushed twice.
///
/// Two shots send the fewest bytes, but in two_shot.hpp a call crosses the link five times, one
/// after the other: addresses, load requests, loaded data, sums, a barrier. Here no rank requests
/// data. Every rank pushes its packs to the rank that adds them up, and that rank pushes the
/// results to all: two trips. All packs go through scratch memory and show by themselves that they
/// have arrived (sentinel_packs.hpp), so this is for floating types, in any memory.
///
/// Part p of the data, for rank p to add up, is `per_part` packs long; pack (p, j) is pack j of
/// part p. In epoch e, which uses bank e % 2 of the scratch memory (mailbox.hpp), the threads of
/// rank r that have index j:
///
/// | shot | does                                | to what                                  | order   | why |
/// |------|-------------------------------------|------------------------------------------|---------|-----|
/// | 1    | stores pack (p, j) of its input     | `scatter[bank][r][j]` of each peer p     | relaxed | a half arrives whole, and is data and flag in one |
/// | 2    | polls until no half is the sentinel | its own `scatter[bank][p][j]`, of all p  | relaxed | as above |
/// | 2    | fences, if the last two parts are empty | between these loads and stores | acq_rel | orders ranks that send each other nothing: see below |
/// | 2    | adds up, in the order of the ranks, and stores the result | `gather[bank][r][j]` of all peers | relaxed | as above |
/// | 2    | stores the result                   | pack (r, j) of `out`                     | plain   | for this rank's stream only |
/// | 2    | stores the sentinel                 | its own `scatter[bank][p][j]`, of all p  | relaxed | the slots are ready for epoch e + 2: see below |
/// | 3    | polls until no half is the sentinel | its own `gather[bank][p][j]`, of all p   | relaxed | as above |
/// | 3    | stores the results                  | pack (p, j) of `out`, for all p          | plain   | for this rank's stream only |
/// | 3    | stores the sentinel                 | its own `gather[bank][p][j]`, of all p   | relaxed | as above |
///
/// Step 3 is not a shot: it collects the results that the peers' second shots have sent.
///
/// - No deadlock: a thread does the first shot for all its j before it waits, so all packs that any
///   second shot waits for are sent; and it does the second shot for all its j before the third
///   step, so all packs that any third step waits for are sent, too. All threads of all ranks run
///   at the same time, and no thread waits for another one of its rank before its own waits have
///   ended.
/// - The next call cannot overtake this one: see mailbox.hpp. A call ends with a result, and each
///   result is made from packs of all ranks.
/// - A call of a few packs may leave the last parts empty, and two ranks p and r with empty parts
///   send each other nothing. Packs of p reach r only through rank q, which loads them and stores
///   a sum. Both are relaxed, so the proof needs the fence between them. Without it, in three calls
///   of 3, 1 and 3 packs on three ranks, the sentinel that p stores into a slot in the first call
///   could overwrite the pack that r sends there in the third. Ranks with a part exchange packs
///   with all others.
/// - In-place calls need nothing else: the result of pack (p, j) can arrive only after rank r has
///   sent its own pack (p, j), and rank r has loaded that before it sent it. Pack (r, j) is loaded
///   and stored by the same thread.
/// - In the kernel that gives up, a thread sends a result only if all its packs have arrived; peers
///   that wait for other results also time out.
/// - Pack (p, j) is added up by rank p alone, and all ranks store the pack that rank p sent: they
///   agree to the last bit, even if a result has the sentinel's bits and is replaced.
///
/// `./lab explore push` runs every execution that the memory model allows.
///
/// Source: the bytes take the path of NCCL's src/device/symmetric/all_reduce.cuh (RSxLD_AGxST), the
/// sentinel is TensorRT-LLM's, whose mnnvl two-shot AllReduce also pushes twice (the second time by
/// multicast).

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
struct TwoShotPush : MailboxCall {
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
