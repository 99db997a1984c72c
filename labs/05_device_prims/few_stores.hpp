#pragma once
/// \file
/// A barrier with few stores: an open task. barrier.hpp needs one trip and n (n - 1) stores. More
/// trips can do with fewer stores.
///
/// `./lab explore meet` runs every execution that the memory model allows.

#include "common/simt/thread_block.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// Each rank's memory for its meetings: symmetric, zeroed before the first use. Any use of it will
/// do.
struct MeetingMemory {
    std::uint32_t word[8];
};

/// Returns true when all ranks have called it for this round: 1, then 2 and so on. What they wrote
/// before may then be read. One thread of each rank calls it. False if a wait gave up.
__host__ __device__ inline bool meet(const SymmetricPointer<MeetingMemory>& memory, int rank,
                                     int ranks, std::uint32_t round, simt::Waiter& waiter) {
    // Rank 0 hears from all others, then tells them: two trips and 2 (n - 1) stores.
    const std::uint32_t* const mine = memory.of(rank)->word;
    if (rank != 0) {
        signal(&memory.of(0)->word[rank], round);
        return wait_signal(waiter, &mine[0], {simt::Wait::kBarrier, rank, 0, round});
    }
    for (int p = 1; p < ranks; ++p) {
        if (!wait_signal(waiter, &mine[p], {simt::Wait::kBarrier, rank, p, round})) {
            return false;
        }
    }
    for (int p = 1; p < ranks; ++p) {
        signal(&memory.of(p)->word[0], round);
    }
    return true;
}

}  // namespace symm
