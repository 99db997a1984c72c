#pragma once
/// \file
/// One shot with staging: each rank copies its input to memory that its peers reach, and then reads
/// that of the peers.
///
/// | thread t of rank r       | order            | why                                         |
/// |--------------------------|------------------|---------------------------------------------|
/// | copies its input         | plain            | no peer reads it before the first meeting   |
/// | meets all ranks          | release, acquire | all know what each has done before          |
/// | adds up the ranks' input | plain            | no peer writes it before the second meeting |
/// | meets all ranks          | release, acquire | the next call overwrites the copies         |
///
/// Model of vLLM's custom AllReduce on ROCm (README.md, "B.2").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

constexpr int kStaged = 2;  ///< Elements of a call, one per thread of the block.

/// Memory of a rank.
struct Staging {
    std::uint32_t element[kStaged];
    std::uint32_t flag[2];  ///< The number of the last meeting that this peer has come to.
};

/// A call of a block of kStaged threads, which is at least the number of ranks.
struct StagedOneShot {
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned t = block.thread_rank();
        memory.of(rank)->element[t] = in[t];
        if (!meet(block, 2 * call + 1)) {
            return;
        }
        const unsigned i = (t + 1) % kStaged;  // copied by another thread
        std::uint32_t sum = 0;
        for (int p = 0; p < ranks; ++p) {
            sum += memory.of(p)->element[i];
        }
        out[i] = sum;
        meet(block, 2 * call + 2);
    }

    /// Meeting `number` of all ranks' blocks: thread p stands for rank p. Returns false if a wait
    /// gave up.
    __host__ __device__ bool meet(const simt::ThreadBlock& block, std::uint32_t number) const {
        simt::Waiter waiter(timeout);
        const int peer = static_cast<int>(block.thread_rank());
        bool arrived = true;
        block.sync();
        if (peer < ranks && peer != rank) {
            signal<simt::Order::kRelease>(&memory.of(peer)->flag[rank], number);
            arrived = wait_signal<simt::Order::kAcquire>(
                waiter, &memory.of(rank)->flag[peer], {simt::Wait::kBarrier, rank, peer, number});
        }
        return !block.sync_or(!arrived);
    }

    SymmetricPointer<Staging> memory;
    const std::uint32_t* in;
    std::uint32_t* out;
    simt::Timeout timeout;
    int rank;
    int ranks;
    std::uint32_t call;  ///< 0, 1, 2 and so on.
};

}  // namespace symm::bugs_that_shipped
