#pragma once
/// \file
/// A barrier of ranks, one block each, whose accesses are all relaxed: fences order them.
///
/// | thread p of rank r               | to what               | why                                  |
/// |----------------------------------|-----------------------|--------------------------------------|
/// | `block.sync()`                   |                       | the whole block has arrived          |
/// | fence                            |                       | publishes what the block has done    |
/// | adds 1 to `awaited[p]`           | its own               | rank p has yet to arrive             |
/// | subtracts 1 from `awaited[r]`    | rank p's              | rank r has arrived                   |
/// | polls until `awaited[p]` is <= 0 | its own               | -1: rank p is at the next barrier    |
/// | fence                            |                       | now what rank p has done may be read |
/// | `block.sync()`                   |                       | by all threads of the block          |
///
/// The counts return to 0, so nothing is reset and nothing counts barriers.
///
/// Model of DeepEP's barrier for GPUs of one machine (README.md, "B.10").

#include <cuda/atomic>

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

constexpr int kMostMet = 2;  ///< Ranks, and threads of a block.

/// Memory of a rank, zeroed.
struct MeetingMemory {
    std::int32_t awaited[kMostMet];
    std::uint32_t given[kMostMet];  ///< An element per thread, which all ranks read.
};

/// `__threadfence_system()`. It makes a relaxed store after it a release, and a relaxed load before
/// it an acquire.
__host__ __device__ inline void fence() {
    cuda::atomic_thread_fence(cuda::std::memory_order_acq_rel, cuda::thread_scope_system);
}

/// A call of a block of kMostMet threads: gives an element each, and adds up those of all ranks.
struct FencedOneShot {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned t = block.thread_rank();
        memory.of(rank)->given[t] = in[t];
        if (!meet(block)) {
            return;
        }
        const unsigned i = (t + 1) % kMostMet;  // given by another thread
        std::uint32_t sum = 0;
        for (int p = 0; p < ranks; ++p) {
            sum += memory.of(p)->given[i];
        }
        out[i] = sum;
        meet(block);  // the next call gives other elements
    }

    /// Waits for the blocks of all ranks. Returns false if a wait gave up.
    __host__ __device__ bool meet(const simt::ThreadBlock& block) const {
        using simt::Order;
        simt::Waiter waiter(timeout);
        const int peer = static_cast<int>(block.thread_rank());
        bool arrived = true;
        block.sync();
        fence();
        if (peer < ranks) {
            std::int32_t* const own = &memory.of(rank)->awaited[peer];
            simt::fetch_add(own, 1, Order::kRelaxed);
            simt::fetch_add(&memory.of(peer)->awaited[rank], -1, Order::kRelaxed);
            arrived = waiter.until({simt::Wait::kBarrier, rank, peer, 0}, [&](std::uint64_t& seen) {
                const std::int32_t awaited = simt::load(own, Order::kRelaxed);
                seen = static_cast<std::uint64_t>(awaited);
                return awaited <= 0;
            });
        }
        fence();
        return !block.sync_or(!arrived);
    }

    SymmetricPointer<MeetingMemory> memory;
    const std::uint32_t* in;
    std::uint32_t* out;
    simt::Timeout timeout;
    int rank;
    int ranks;
};

}  // namespace symm::bugs_that_shipped
