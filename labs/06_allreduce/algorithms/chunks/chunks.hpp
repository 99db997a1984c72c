#pragma once
/// \file
/// Two shots that only store: an AllReduce, or one of the two shots alone. Rank p adds up part p.
/// Each block of rank r makes rounds, of the same chunks as this block of the other ranks:
///
/// 1. Meets the other ranks (rendezvous.hpp).
/// 2. Pushes chunks of part p into a slot of rank p (peer_slots.hpp), in turns; a flag follows.
/// 3. Waits for its peers' flags, and adds up the chunks of part r.
/// 4. Stores the sums into the peers' outputs, or into slots if these lie in no window.
/// 5. Passes a barrier.
///
/// README.md has the tables of accesses, and the proof.

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/peer_slots.hpp"
#include "labs/06_allreduce/algorithms/turns/turns.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

/// Each rank's memory for these calls: symmetric, zeroed before the first use.
struct ChunksMemory {
    /// Written by peers: `sent[b][r]` and `shared[b][r]` by block b of rank r.
    alignas(64) std::uint32_t sent[kMaxBarrierBlocks][kMaxBarrierRanks];
    alignas(64) std::uint32_t shared[kMaxBarrierBlocks][kMaxBarrierRanks];
    /// Written by this rank: how often each block has told its peers, modulo 2^32.
    std::uint32_t steps[kMaxBarrierBlocks];
    std::uint32_t shares[kMaxBarrierBlocks];
    TurnsMemory turns;
};

/// Parameters of a call's kernel, for any type.
struct ChunksParams : TwoShotParams {
    SymmetricPointer<ChunksMemory> memory;
    Trust trust;
    PeerSlots inputs;        ///< Larger than a part, by a pack or more.
    PeerSlots sums;          ///< The same.
    std::size_t part_bytes;  ///< From one part of a ReduceScatter or an AllGather to the next.
    unsigned chunk;          ///< Packs per chunk, at least 1.
    bool unpacks;            ///< Outputs lie in no window. The same on all ranks.
};

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct Chunks : ChunksParams {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;
    static constexpr unsigned kSharedBytes = kMost * sizeof(Buffers);

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (make_call(block)) {
            trust.require(block, timeout);
        } else {
            trust.tell_peers(block);
        }
    }

private:
    __host__ __device__ bool reduces() const { return collective != Collective::kAllGather; }
    __host__ __device__ bool gathers() const { return collective != Collective::kReduceScatter; }
    __host__ __device__ bool is_cut() const { return collective == Collective::kAllReduce; }

    /// Packs of the longest part, of `packs` packs.
    __host__ __device__ std::size_t per_part(std::size_t packs) const {
        const auto parts = static_cast<std::size_t>(is_cut() ? ranks : 1);
        return (packs + parts - 1) / parts;
    }

    /// The same on all ranks: the addresses at which they map a buffer differ by whole granules.
    __host__ __device__ bool are_aligned(const Buffers* all) const {
        CUdeviceptr bits = part_bytes;
        for (int p = 0; p < ranks; ++p) {
            bits |= all[p].in | all[p].out;
        }
        return bits % sizeof(simt::Pack16) == 0;
    }

    /// Returns false, on all threads of the block, if one of them gave up.
    __host__ __device__ bool make_call(const simt::ThreadBlock& block) const {
        auto* const all = block.shared<Buffers>();
        if (!rendezvous.meet(block, timeout, all)) {
            return false;
        }
        const std::size_t packs = are_aligned(all) ? count / kElements : 0;
        const std::size_t rest = count - packs * kElements;
        ChunksMemory& own = *memory.of(rank);
        const unsigned b = block.group_index();
        const Told first{own.steps[b], own.shares[b]};
        Told told = first;
        if (packs != 0 && !Pass<simt::Pack16>(*this, block, all, packs, {}, true).run(told)) {
            return false;
        }
        const Before before{packs * sizeof(simt::Pack16), per_part(packs) * sizeof(simt::Pack16)};
        if (rest != 0 && !Pass<One<T>>(*this, block, all, rest, before, false).run(told)) {
            return false;
        }
        // All threads have read the counts before a sync: each wait for a flag has one.
        if (told.steps != first.steps && block.thread_rank() == 0) {
            own.steps[b] = told.steps;
        }
        if (told.shares != first.shares && block.thread_rank() == 0) {
            own.shares[b] = told.shares;
        }
        Barrier end(block, barrier, timeout);
        if (!end.arrive_and_wait()) {
            return false;
        }
        end.store_epoch();
        return true;
    }

    /// How often a block has told its peers, by `sent` and by `shared`.
    struct Told {
        std::uint32_t steps;
        std::uint32_t shares;
    };

    /// What another pass takes, in bytes: of the buffer or of each part, and of a slot.
    struct Before {
        std::size_t in_buffer;
        std::size_t in_slot;
    };

    /// All rounds of a block, for some of the call's elements as packs.
    template <class Pack>
    class Pass {
    public:
        /// `packs`: of the buffer if it is cut into parts, else of each part.
        __host__ __device__ Pass(const Chunks& call, const simt::ThreadBlock& block,
                                 const Buffers* all, std::size_t packs, const Before& before,
                                 bool in_turns)
            : call_(call),
              block_(block),
              all_(all),
              before_(before),
              packs_(packs),
              per_part_(call.per_part(packs)),
              stride_(std::size_t{block.dim_blocks()} * call.chunk),
              round_(call.ranks <= 2 ? stride_ : per_part_),
              turns_(block, call.memory.member(&ChunksMemory::turns), call.rank, call.ranks,
                     (call.ranks - 1) * (call.is_cut() ? 2 : 1), in_turns),
              waiter_(call.timeout),
              together_(block) {}

        /// Makes the rounds, and counts what it tells. Returns false like make_call.
        __host__ __device__ bool run(Told& told) {
            const bool reduces = call_.reduces();
            if (reduces && !push(0, told.steps + 1)) {
                return false;
            }
            std::size_t at = 0;
            for (; at < per_part_; at += round_) {
                told.steps += reduces ? 1 : 0;
                told.shares += call_.unpacks ? 1 : 0;
                if (reduces && at + round_ < per_part_ && !push(at + round_, told.steps + 1)) {
                    return false;
                }
                if (reduces && !(wait(&ChunksMemory::sent, told.steps) && reduce(at))) {
                    return false;
                }
                if (call_.gathers() && !share(at, told.shares)) {
                    return false;
                }
                if (call_.unpacks && at != 0 && !unpack(at - round_, told.shares - 1)) {
                    return false;
                }
            }
            return !call_.unpacks || unpack(at - round_, told.shares);
        }

    private:
        /// Packs of a copy that a thread has in flight. Turns need few, because all blocks send to
        /// one peer.
        static constexpr int kAtOnce = kMost <= 2 && sizeof(Pack) == sizeof(simt::Pack16) ? 4 : 1;

        using Inbox = std::uint32_t[kMaxBarrierBlocks][kMaxBarrierRanks];

        /// Sends the chunks of a round of each peer's part.
        __host__ __device__ bool push(std::size_t at, std::uint32_t step) {
            for (int s = 1; s < call_.ranks; ++s) {
                const int p = peer();
                if (!begin_turn()) {
                    return false;
                }
                copy(at, p, input(p), slot(call_.inputs, p, call_.rank));
                end_turn();
            }
            tell(&ChunksMemory::sent, step);
            return true;
        }

        /// Adds up the chunks of a round of this rank's part, and shares them with the first peer.
        __host__ __device__ bool reduce(std::size_t at) {
            const int rank = call_.rank;
            const bool shares = call_.gathers() && call_.ranks > 1;
            if (shares && !begin_turn()) {
                return false;
            }
            PackReducer<T, Pack, kMost, 2> reducer;
            reducer.sources = call_.ranks;
            SYMM_UNROLL
            for (int p = 0; p < kMost; ++p) {
                reducer.source[p] =
                    p == rank || p >= call_.ranks ? input(rank) : slot(call_.inputs, rank, p);
            }
            reducer.targets = shares ? 2 : 1;
            reducer.target[0] = output(rank);
            reducer.target[1] = shares ? target(peer()) : nullptr;
            for (std::size_t c = first(at); c < at + round_; c += stride_) {
                reducer.reduce(c + block_.thread_rank(), block_.size(), end(rank, c),
                               call_.reduction);
            }
            if (shares) {
                end_turn();
            }
            return true;
        }

        /// Sends the chunks of a round of this rank's part to the peers that do not have them yet.
        __host__ __device__ bool share(std::size_t at, std::uint32_t step) {
            const int rank = call_.rank;
            const bool reduced = call_.reduces();
            const Pack* const from = reduced ? output(rank) : input(rank);
            Pack* own = from != output(rank) ? output(rank) : nullptr;
            for (int s = reduced ? 2 : 1; s < call_.ranks; ++s) {
                const int p = peer();
                if (!begin_turn()) {
                    return false;
                }
                copy(at, rank, from, target(p), own);
                end_turn();
                own = nullptr;
            }
            if (own != nullptr) {  // there are no peers
                copy(at, rank, from, own);
            }
            if (call_.unpacks) {
                tell(&ChunksMemory::shared, step);
            }
            return true;
        }

        /// Puts away the chunks of a round that the peers have shared.
        __host__ __device__ bool unpack(std::size_t at, std::uint32_t step) {
            if (!wait(&ChunksMemory::shared, step)) {
                return false;
            }
            for (int s = 1; s < call_.ranks; ++s) {
                const int p = call_.peer(s);
                copy(at, p, slot(call_.sums, call_.rank, p), output(p));
            }
            return true;
        }

        /// Tells the peers, in their `inbox`, that this block has made step `step`.
        __host__ __device__ void tell(Inbox ChunksMemory::*inbox, std::uint32_t step) {
            block_.sync();
            for (int p = static_cast<int>(block_.thread_rank()); p < call_.ranks;
                 p += static_cast<int>(block_.size())) {
                if (p != call_.rank) {
                    ChunksMemory& memory = *call_.memory.of(p);
                    signal(&(memory.*inbox)[block_.group_index()][call_.rank], step);
                }
            }
        }

        /// Waits until all peers have told that they have made step `step`.
        __host__ __device__ bool wait(Inbox ChunksMemory::*inbox, std::uint32_t step) {
            ChunksMemory& own = *call_.memory.of(call_.rank);
            bool arrived = true;
            for (int p = static_cast<int>(block_.thread_rank()); p < call_.ranks;
                 p += static_cast<int>(block_.size())) {
                if (p != call_.rank) {
                    arrived &= wait_signal(waiter_, &(own.*inbox)[block_.group_index()][p],
                                           {simt::Wait::kSignal, call_.rank, p, step});
                }
            }
            return together_.sync(arrived);
        }

        /// The rank to which this one sends now. Two ranks take no turns.
        __host__ __device__ int peer() const { return kMost <= 2 ? 1 - call_.rank : turns_.peer(); }
        __host__ __device__ bool begin_turn() {
            return kMost <= 2 || !turns_.waits() ||
                   together_.sync(block_.thread_rank() != 0 || turns_.wait(waiter_));
        }
        __host__ __device__ void end_turn() {
            if (kMost <= 2) {
                return;
            }
            if (block_.thread_rank() == block_.size() - 1) {  // not the thread that waits next
                turns_.end();
            }
            turns_.next();
        }

        /// Copies this block's chunks of a round of part p, also to `also` unless that is null.
        __host__ __device__ void copy(std::size_t at, int p, const Pack* from, Pack* to,
                                      Pack* also = nullptr) const {
            for (std::size_t c = first(at); c < at + round_; c += stride_) {
                copy_chunk(c, end(p, c), from, to);
                if (also != nullptr) {
                    copy_chunk(c, end(p, c), from, also);
                }
            }
        }
        __host__ __device__ void copy_chunk(std::size_t c, std::size_t end, const Pack* from,
                                            Pack* to) const {
            const std::size_t step = block_.size();
            for (std::size_t i = c + block_.thread_rank(); i < end; i += kAtOnce * step) {
                Pack loaded[kAtOnce];
                SYMM_UNROLL
                for (int v = 0; v < kAtOnce; ++v) {  // all loads before the first store
                    if (i + v * step < end) {
                        loaded[v] = from[i + v * step];
                    }
                }
                SYMM_UNROLL
                for (int v = 0; v < kAtOnce; ++v) {
                    if (i + v * step < end) {
                        to[i + v * step] = loaded[v];
                    }
                }
            }
        }

        /// The first pack of this block's first chunk of a round.
        __host__ __device__ std::size_t first(std::size_t at) const {
            return at + std::size_t{block_.group_index()} * call_.chunk;
        }
        /// The end of the chunk of part p that begins at pack `c`.
        __host__ __device__ std::size_t end(int p, std::size_t c) const {
            const std::size_t begin = call_.is_cut() ? static_cast<std::size_t>(p) * per_part_ : 0;
            const std::size_t left = begin < packs_ ? packs_ - begin : 0;
            const std::size_t length = left < per_part_ ? left : per_part_;
            return c + call_.chunk < length ? c + call_.chunk : length;
        }

        /// Bytes before part p of a buffer that has all parts.
        __host__ __device__ std::size_t before(int p) const {
            return before_.in_buffer +
                   static_cast<std::size_t>(p) *
                       (call_.is_cut() ? per_part_ * sizeof(Pack) : call_.part_bytes);
        }
        __host__ __device__ const Pack* input(int p) const {
            return reinterpret_cast<const Pack*>(call_.in +
                                                 (call_.reduces() ? before(p) : before_.in_buffer));
        }
        __host__ __device__ Pack* output(int p) const {
            return reinterpret_cast<Pack*>(call_.out +
                                           (call_.gathers() ? before(p) : before_.in_buffer));
        }
        /// Where this rank's part goes on rank p, for an AllGather the address that p has sent.
        __host__ __device__ Pack* target(int p) const {
            return call_.unpacks ? slot(call_.sums, p, call_.rank)
                                 : reinterpret_cast<Pack*>(all_[p].out + (call_.is_cut()
                                                                              ? before(call_.rank)
                                                                              : before_.in_buffer));
        }
        __host__ __device__ Pack* slot(const PeerSlots& slots, int receiver, int sender) const {
            return reinterpret_cast<Pack*>(reinterpret_cast<char*>(slots.of(receiver, sender)) +
                                           before_.in_slot);
        }

        const Chunks& call_;
        simt::ThreadBlock block_;
        const Buffers* all_;
        Before before_;
        std::size_t packs_;
        std::size_t per_part_;  ///< The last parts may be shorter, or empty.
        std::size_t stride_;    ///< Packs from one chunk of this block to its next.
        std::size_t round_;     ///< Packs of each part.
        Turns turns_;
        simt::Waiter waiter_;
        AbortBarrier together_;
    };
};

}  // namespace symm
