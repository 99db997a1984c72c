#pragma once
/// \file
/// The kernels of a call by the copy engine, and what they share. README.md has the table, with
/// streams and orders, and the proof.

#include <cuda.h>

#include <cstddef>

#include "labs/04_shm_transport/connection/copy_bytes.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/peer_slots.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"

namespace symm {

/// Each rank's memory for these calls: symmetric, zeroed before the first use.
struct CopyMemory {
    static constexpr int kMostPieces = 3;  ///< A part has no more.
    using Flags = std::uint32_t[kMostPieces][kMaxBarrierRanks];
    // Written by peers: the last round in which their piece has arrived.
    Flags inputs;
    Flags sums;
    // Written by this rank:
    std::uint32_t rounds;  ///< Ended so far, modulo 2^32. The next one has this number + 1.
};

/// The kernel of the end of a round: begins the next one.
struct EndOfRound {
    BarrierView barrier;
    SymmetricPointer<CopyMemory> memory;
    Trust trust;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier end(block, barrier, timeout);
        if (!end.arrive_and_wait()) {
            trust.tell_peers(block);
            return;
        }
        end.store_epoch();
        if (block.thread_rank() == 0) {
            ++memory.of(barrier.rank)->rounds;
        }
        trust.require(block, timeout);
    }
};

/// Parameters of the kernel that reduces a piece, for any type.
struct ReducePieceParams {
    CUdeviceptr in;   ///< The piece in this rank's input.
    CUdeviceptr out;  ///< Where its sums go.
    std::size_t count;
    CUdeviceptr arrived;     ///< The peers' pieces, in their order,
    std::size_t slot_bytes;  ///< this many bytes apart.
    SymmetricPointer<CopyMemory> memory;
    int piece;
    Reduction reduction;
    simt::Timeout timeout;
    int rank;
    int ranks;
};

/// The kernel, for at most kMost ranks.
template <class T, int kMost>
struct ReducePiece : ReducePieceParams {
    static constexpr unsigned kMaxThreads = kMostThreads;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (!meet_peers(block)) {
            return;
        }
        const CUdeviceptr bits = in | out | arrived | slot_bytes;
        constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
        const bool aligned = bits % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kElements : 0;
        reduce<simt::Pack16>(block, 0, packs);
        // The elements after the last whole pack, or all if a buffer is not aligned.
        reduce<One<T>>(block, packs * kElements, count);
    }

private:
    /// Tells the peers that they have this rank's piece, and waits for theirs. Returns false, on
    /// all threads of the block, if one gave up.
    __host__ __device__ bool meet_peers(const simt::ThreadBlock& block) const {
        simt::Waiter waiter(timeout);
        const std::uint32_t round = memory.of(rank)->rounds + 1;
        const int first = static_cast<int>(block.thread_rank());
        const int step = static_cast<int>(block.size());
        for (int p = first; p < ranks && block.group_index() == 0; p += step) {
            if (p != rank && !waiter.gave_up()) {
                signal(&memory.of(p)->inputs[piece][rank], round);
            }
        }
        bool all_here = true;
        for (int p = first; p < ranks; p += step) {
            if (p != rank) {
                all_here &= wait_signal(waiter, &memory.of(rank)->inputs[piece][p],
                                        {simt::Wait::kSignal, rank, p, round});
            }
        }
        return AbortBarrier(block).sync(all_here);
    }

    template <class Pack>
    __host__ __device__ void reduce(const simt::ThreadBlock& block, std::size_t first,
                                    std::size_t last) const {
        PackReducer<T, Pack, kMost, 1> reducer;
        reducer.sources = ranks;
        reducer.targets = 1;
        reducer.target[0] = reinterpret_cast<Pack*>(out);
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            const auto before = static_cast<std::size_t>(p < rank ? p : p - 1);
            reducer.source[p] = reinterpret_cast<const Pack*>(
                p == rank || p >= ranks ? in : arrived + before * slot_bytes);
        }
        reducer(block, first, last, reduction);
    }
};

/// The kernel that copies a piece that a peer has sent from its slot to this rank's output.
struct Unpack {
    static constexpr unsigned kMaxThreads = kMostThreads;

    CUdeviceptr out;   ///< Where the piece goes.
    CUdeviceptr slot;  ///< Where it is: at a multiple of 16 bytes.
    std::size_t bytes;
    SymmetricPointer<CopyMemory> memory;
    int piece;
    int to;    ///< This rank has sent its own piece to this peer.
    int from;  ///< The peer that sends the piece.
    simt::Timeout timeout;
    int rank;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        simt::Waiter waiter(timeout);
        const std::uint32_t round = memory.of(rank)->rounds + 1;
        bool is_here = true;
        if (block.thread_rank() == 0) {
            if (block.group_index() == 0 && !waiter.gave_up()) {
                signal(&memory.of(to)->sums[piece][rank], round);
            }
            is_here = wait_signal(waiter, &memory.of(rank)->sums[piece][from],
                                  {simt::Wait::kSignal, rank, from, round});
        }
        if (!AbortBarrier(block).sync(is_here)) {
            return;
        }
        constexpr unsigned kAtOnce = 8;  // loads in flight per thread
        copy_bytes<kAtOnce>(block.grid_rank(), block.grid_size(), reinterpret_cast<std::byte*>(out),
                            reinterpret_cast<const std::byte*>(slot), bytes);
    }
};

}  // namespace symm
