#pragma once
/// \file
/// A barrier of all ranks by the switch: one instruction adds to a count of every rank, where
/// barrier.hpp stores a flag for each. A count does not tell who is late. Block b of rank r:
///
/// | who         | does                        | to what                       | order   | why            |
/// |-------------|-----------------------------|-------------------------------|---------|----------------|
/// | all threads | `block.sync_or(gave_up)`    |                               | block   | all accesses of the block come before the addition; if a thread has given up, all leave |
/// | thread 0    | adds one, for all           | every rank's `arrived[b]`     | release | a rank that sees the sum sees rank r's writes |
/// | thread 0    | polls until all have added  | its own `arrived[b]`          | acquire | now rank r sees all ranks' writes |
/// | all threads | `AbortBarrier::sync`        |                               | block   | no thread goes on before all ranks have arrived, or all leave |

#include "common/simt/multimem.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// A rank's memory for its barriers, behind a multicast address. Zeroed before the first use.
struct ArrivalCounts {
    /// Additions by all ranks, modulo 2^32. A row of its own for each block.
    struct alignas(64) Count {
        std::uint32_t value;
    };
    Count arrived[kMaxBarrierBlocks];
    /// Written by this rank alone: barriers that each block has passed, modulo 2^32.
    std::uint32_t passed[kMaxBarrierBlocks];
};

/// All ranks' counts: among a kernel's parameters.
struct ArrivalView {
    ArrivalCounts* own;
    ArrivalCounts* all;  ///< The multicast address.
    int rank;
    int ranks;
};

/// One block's side of its barriers in one kernel, used like Barrier.
class MulticastBarrier {
public:
    __host__ __device__ MulticastBarrier(const simt::ThreadBlock& block, const ArrivalView& view,
                                         const simt::Timeout& timeout)
        : block_(block),
          view_(view),
          together_(block),
          waiter_(timeout),
          passed_(view.own->passed[block.group_index()]) {}

    /// Whether this thread has given up: then it may change nothing that others read.
    __host__ __device__ bool gave_up() const { return waiter_.gave_up(); }
    /// Waits for the same block of every rank. Returns false, on all threads of the block, if it
    /// gave up: then leave the kernel.
    __host__ __device__ bool arrive_and_wait() {
        ++passed_;
        if (block_.sync_or(waiter_.gave_up())) {
            return false;
        }
        bool arrived = true;
        if (block_.thread_rank() == 0) {
            const unsigned b = block_.group_index();
            simt::fence_alias();  // own addresses before, the multicast address after
            simt::add_to_all(block_, &view_.all->arrived[b].value, 1);
            simt::fence_alias();  // and the other way round
            // So many additions were there when all have arrived, modulo 2^32.
            const std::uint32_t all = passed_ * static_cast<std::uint32_t>(view_.ranks);
            arrived = wait_signal(waiter_, &view_.own->arrived[b].value,
                                  {simt::Wait::kArrivals, view_.rank, view_.rank, all});
        }
        return together_.sync(arrived);
    }

    /// Stores the number of barriers in device memory for the next kernel of the stream.
    __host__ __device__ void store_epoch() const {
        if (block_.thread_rank() == 0) {
            view_.own->passed[block_.group_index()] = passed_;
        }
    }

private:
    const simt::ThreadBlock& block_;
    const ArrivalView& view_;
    AbortBarrier together_;
    simt::Waiter waiter_;
    std::uint32_t passed_;
};

}  // namespace symm
