#pragma once
/// \file
/// A barrier of all ranks, block by block, inside a kernel. Block b of a rank has an inbox in
/// symmetric memory, with one flag per peer, and meets block b of all other ranks. README.md has
/// the proofs. Block b of rank r (in a small block, a thread serves several peers p):
///
/// | who         | does                      | to what                 | order     | why                           |
/// |-------------|---------------------------|-------------------------|-----------|-------------------------------|
/// | all threads | `block.sync()`            |                         | block     | all reads and writes of the block come before the signal |
/// | thread p    | stores epoch e            | rank p's `inbox[b][r]`  | release   | a rank that sees the flag sees rank r's writes |
/// | thread p    | polls until e is reached  | its own `inbox[b][p]`   | acquire   | now rank r sees rank p's writes |
/// | all threads | `AbortBarrier::sync`      |                         | block     | no thread reads before all ranks have arrived, or all leave |

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// The most blocks of a rank, and the most ranks, in a barrier.
inline constexpr unsigned kMaxBarrierBlocks = 128;
inline constexpr int kMaxBarrierRanks = 16;

/// A rank's memory for its barriers: symmetric memory at the same offset, zeroed before first use.
struct BarrierMemory {
    /// Written by peers: `inbox[b][r]` by block b of rank r. A row is two 32-byte sectors.
    alignas(64) std::uint32_t inbox[kMaxBarrierBlocks][kMaxBarrierRanks];
    /// Written by this rank: barriers that each block has passed, modulo 2^32.
    std::uint32_t epoch[kMaxBarrierBlocks];
};

/// All ranks' barriers: among a kernel's parameters.
struct BarrierView {
    SymmetricPointer<BarrierMemory> memory;
    int rank;   ///< This rank.
    int ranks;  ///< At most kMaxBarrierRanks.

    __host__ __device__ BarrierMemory* peer(int which) const { return memory.of(which); }
    __host__ __device__ BarrierMemory* local() const { return peer(rank); }
};

/// One block's side of its barriers in one kernel. Every thread of the block has one, and all call
/// each member together. `store_epoch` is called last.
class Barrier {
public:
    __host__ __device__ Barrier(const simt::ThreadBlock& block, const BarrierView& view,
                                const simt::Timeout& timeout)
        : block_(block),
          view_(view),
          all_(block),
          waiter_(timeout),
          epoch_(view.local()->epoch[block.group_index()]) {}

    /// Waits for the same block of every rank. Returns false, on all threads of the block, if one
    /// of them gave up: then leave the kernel.
    __host__ __device__ bool arrive_and_wait() {
        ++epoch_;
        block_.sync();
        const unsigned b = block_.group_index();
        const int first = static_cast<int>(block_.thread_rank());
        const int step = static_cast<int>(block_.size());
        for (int p = first; p < view_.ranks; p += step) {
            if (p != view_.rank && !waiter_.gave_up()) {
                signal(&view_.peer(p)->inbox[b][view_.rank], epoch_);
            }
        }
        bool arrived = true;
        for (int p = first; p < view_.ranks; p += step) {
            if (p != view_.rank) {
                arrived &= wait_signal(waiter_, &view_.local()->inbox[b][p],
                                       {simt::Wait::kBarrier, view_.rank, p, epoch_});
            }
        }
        return all_.sync(arrived);
    }

    /// Stores the count in device memory for the next kernel of the stream.
    __host__ __device__ void store_epoch() const {
        if (block_.thread_rank() == 0) {
            view_.local()->epoch[block_.group_index()] = epoch_;
        }
    }

private:
    const simt::ThreadBlock& block_;
    const BarrierView& view_;
    AbortBarrier all_;
    simt::Waiter waiter_;
    std::uint32_t epoch_;
};

}  // namespace symm
