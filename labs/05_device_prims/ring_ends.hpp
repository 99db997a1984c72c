#pragma once
/// \file
/// One channel of a ring, as one rank sees it: where it receives and where it sends.

#include "labs/04_shm_transport/connection.hpp"
#include "labs/05_device_prims/reduction.hpp"

namespace symm {

/// Rank r receives from `prev`, rank r - 1, and sends to `next`, rank r + 1, both modulo the number
/// of ranks.
struct RingEnds {
    ConnectionEnd from_prev;
    ConnectionEnd to_next;
    int rank;
    int prev;
    int next;
    const simt::Timeout& timeout;  ///< The kernel's parameter.
};

/// What one step of a primitive does. Its name says it too: recv_reduce_copy_send receives, reduces
/// what came with the source, writes the output and sends.
struct Move {
    bool receive = false;
    bool send = false;
    bool source = false;  ///< Reads the user's input.
    bool output = false;  ///< Writes the user's output.
    /// What is received is in the output already, because the sender stored it there.
    bool received_in_place = false;
    /// What is sent is stored into the next rank's output.
    bool sent_in_place = false;

    /// All ranks' elements have been combined.
    __host__ __device__ constexpr bool completes() const { return receive && source && output; }
};

/// This rank's output and the next rank's, for the direct forms of primitives. Both null where the
/// next rank's cannot be reached.
template <class T>
struct DirectOutputs {
    T* own = nullptr;
    T* next = nullptr;

    __host__ __device__ T* at_next(const T* output) const { return next + (output - own); }
};

}  // namespace symm
