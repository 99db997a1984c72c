#pragma once
/// \file
/// One channel of a ring, as one rank sees it: where it receives and where it sends.

#include "labs/04_shm_transport/connection/fifo.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/05_device_prims/ring/trace.hpp"

namespace symm {

/// Rank r receives from `prev`, rank r - 1, and sends to `next`, rank r + 1, both modulo the number
/// of ranks. The constructor of a protocol reads both ends' `step`; Simple stores it at each step,
/// LL and LL128 in finish(). So if one group only sends and another only receives, each passes a
/// `step` of its own for the end that it does not use.
struct RingEnds {
    ConnectionEnd from_prev;
    ConnectionEnd to_next;
    int rank;
    int prev;
    int next;
    const simt::Timeout& timeout;  ///< The kernel's parameter.
    Tracer tracer = {};
};

/// This rank's output and the next rank's, for the direct forms of primitives. `next` is null if
/// this rank cannot store there.
template <class T>
struct DirectOutputs {
    T* own = nullptr;
    T* next = nullptr;

    __host__ __device__ T* at_next(const T* output) const { return next + (output - own); }
};

}  // namespace symm
