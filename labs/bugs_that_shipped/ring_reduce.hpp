#pragma once
/// \file
/// An AllReduce on a ring of two ranks, chunk by chunk, over a network whose puts arrive in any
/// order.
///
/// | call e, for each chunk               | in whose memory | why                                |
/// |--------------------------------------|-----------------|------------------------------------|
/// | rank 0 puts its input, with a signal | rank 1's        | the next chunk need not wait       |
/// | rank 1 waits for this chunk's signal | its own         | the input of rank 0 is there       |
/// | rank 1 puts the sum, with a signal   | rank 0's        | rank 0 has read its last chunk     |
/// | rank 0 waits for this chunk's signal | its own         | the sum is there                   |
///
/// A put's value is in the peer's memory before its signal is. Two puts have no order.
///
/// Model of the example ring-reduce of NVSHMEM (README.md, "B.9").

#include <cstdint>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/bugs_that_shipped/network.hpp"

namespace symm::bugs_that_shipped {

constexpr std::uint32_t kChunks = 2;  ///< Of one element each.

/// Memory of a rank, zeroed.
struct RingMemory {
    std::uint32_t chunk[kChunks];   ///< What the peer has put there.
    std::uint32_t signal[kChunks];  ///< The last call whose chunk has arrived.
};

/// One thread of each rank. `in` and `out` have an element per chunk.
struct RingReduce {
    /// Call `call`: 1, 2 and so on.
    void operator()(Network& network, std::uint32_t call) const {
        if (rank == 0) {
            for (std::uint32_t c = 0; c < kChunks; ++c) {
                send(network, call, c, in[c]);
            }
        }
        for (std::uint32_t c = 0; c < kChunks; ++c) {
            if (!wait_for(call, c)) {
                return;
            }
            const std::uint32_t arrived = memory.of(rank)->chunk[c];
            out[c] = rank == 0 ? arrived : arrived + in[c];
            if (rank == 1) {
                send(network, call, c, out[c]);
            }
        }
    }

    /// Puts a chunk into the peer's memory, with its signal.
    void send(Network& network, std::uint32_t call, std::uint32_t c, std::uint32_t value) const {
        RingMemory* const peers = memory.of(1 - rank);
        network.put_signal({&peers->chunk[c], value, &peers->signal[c], SignalOp::kSet, call});
    }

    /// Waits until the peer's chunk `c` of this call is here. Returns false if the wait gave up.
    bool wait_for(std::uint32_t call, std::uint32_t c) const {
        simt::Waiter waiter(timeout);
        return wait_signal(waiter, &memory.of(rank)->signal[c],
                           {simt::Wait::kSignal, rank, 1 - rank, call});
    }

    SymmetricPointer<RingMemory> memory;
    const std::uint32_t* in;
    std::uint32_t* out;
    simt::Timeout timeout;
    int rank;
};

}  // namespace symm::bugs_that_shipped
