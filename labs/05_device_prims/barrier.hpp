#pragma once
/// \file
/// A barrier of all ranks, block by block, inside a kernel.
///
/// Every rank keeps an inbox in symmetric memory: one flag for each block and peer. Block b of each
/// rank meets block b of every other rank; blocks of one rank do not wait for one another. Block b
/// of rank r:
///
/// | who         | does                     | to what                 | order   | why               |
/// |-------------|--------------------------|-------------------------|---------|-------------------|
/// | all threads | `block.sync()`           |                         | block   | what any wrote comes before the signal |
/// | thread p    | stores epoch e           | rank p's `inbox[b][r]`  | release | rank p sees rank r's writes after it |
/// | thread p    | polls until e is reached | its own `inbox[b][p]`   | acquire | and rank r sees rank p's |
/// | all threads | `block.sync()`           |                         | block   | nobody reads before all have come |
///
/// - It cannot deadlock: a rank stores to all before it waits for any, one thread a peer. It needs
///   block b of all ranks to be running at once, which the launch has to see to.
/// - The next barrier cannot overtake it: a peer that is already in barrier e + 1 has stored e + 1,
///   which has reached e; it cannot come to e + 2 before this rank has stored e + 1. Wrapping
///   compares do the rest.
/// - A rank that gives up waiting signals no more: the block's verdict is one, and whoever comes late
///   finds no second signal, gives up as well and never takes what is there for a result.
/// - Each block counts its own epochs, in device memory: a graph that replays the kernel counts on.
///
/// Source: NCCL's LSA barrier (src/include/nccl_device/impl/lsa_barrier__funcs.h).

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// The most blocks and ranks that meet.
inline constexpr unsigned kMaxBarrierBlocks = 128;
inline constexpr int kMaxBarrierRanks = 8;

/// What each rank keeps for its barriers, in symmetric memory at the same offset, zeroed before
/// first use.
struct BarrierMemory {
    /// Written by peers: `inbox[b][r]` by block b of rank r. A row is one block's, in one 32-byte
    /// sector.
    alignas(32) std::uint32_t inbox[kMaxBarrierBlocks][kMaxBarrierRanks];
    /// Written by this rank: barriers that each block has passed, modulo 2^32.
    std::uint32_t epoch[kMaxBarrierBlocks];
};

/// All ranks' BarrierMemory: part of a kernel's parameters.
struct BarrierView {
    BarrierMemory* first;  ///< Rank 0's, in this process's addresses.
    std::size_t stride;    ///< From one rank's to the next, bytes.
    int rank;              ///< This rank.
    int ranks;             ///< At most kMaxBarrierRanks.

    __host__ __device__ BarrierMemory* peer(int which) const {
        return reinterpret_cast<BarrierMemory*>(reinterpret_cast<char*>(first) +
                                                static_cast<std::size_t>(which) * stride);
    }
};

/// One block's side of its barriers in one kernel. Every thread of the block holds one, and all
/// call each member together. `store_epoch` comes last.
class Barrier {
public:
    __host__ __device__ Barrier(const simt::ThreadBlock& block, const BarrierView& view,
                                const simt::Timeout& timeout)
        : block_(block),
          view_(view),
          timeout_(timeout),
          epoch_(view.peer(view.rank)->epoch[block.group_index()]) {}

    /// Waits for the same block of every rank; false, on all threads, when one of them gave up. What their threads wrote before is seen by this
    /// block's after.
    __host__ __device__ bool arrive_and_wait() {
        ++epoch_;
        sync_block();
        const int peer = static_cast<int>(block_.thread_rank());
        const unsigned b = block_.group_index();
        for (int p = peer; p < view_.ranks; p += static_cast<int>(block_.size())) {
            if (p != view_.rank) {
                signal(&view_.peer(p)->inbox[b][view_.rank], epoch_);
            }
        }
        bool gave_up = false;
        for (int p = peer; p < view_.ranks; p += static_cast<int>(block_.size())) {
            if (p != view_.rank) {
                gave_up |= !wait_signal(timeout_, &view_.peer(view_.rank)->inbox[b][p],
                                        {simt::Wait::kBarrier, view_.rank, p, epoch_});
            }
        }
#ifdef SYMM_MUTANT_NO_SYNC
        return !gave_up;
#else
        return !block_.sync_or(gave_up);
#endif
    }

    /// Keeps the count for the next kernel. The stream's order brings it there.
    __host__ __device__ void store_epoch() const {
        if (block_.thread_rank() == 0) {
            view_.peer(view_.rank)->epoch[block_.group_index()] = epoch_;
        }
    }

private:
    __host__ __device__ void sync_block() const {
#ifndef SYMM_MUTANT_NO_SYNC  // a mutant of the tests, which ThreadSanitizer must report
        block_.sync();
#endif
    }

    const simt::ThreadBlock& block_;
    const BarrierView& view_;
    const simt::Timeout& timeout_;
    std::uint32_t epoch_;
};

}  // namespace symm
