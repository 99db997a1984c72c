#pragma once
/// \file
/// The latency of a primitive: eight bytes sent back and forth between ranks 0 and 1, by send() and
/// recv() of a protocol, or as a bare flag in the same memory.

#include <cuda.h>

#include <cstdint>

#include "common/cuda/event.hpp"
#include "labs/05_device_prims/ring_communicator.hpp"

namespace symm {

/// What both kernels need. The connections are those of a ring of two ranks.
struct StepPingPong {
    Connection from_prev;
    Connection to_next;
    int rank;
    std::uint32_t rounds;
    std::uint64_t* wrong;  ///< In device memory: payloads that were not as sent.
    simt::Timeout timeout;
};

/// Queue the kernels. Throw CudaError. (In a .cu file.)
void launch_step_ping_pong(CUstream stream, Protocol protocol, const StepPingPong& ping_pong);
/// The flags use the memory of the slots, which have to be zeroed and without other use.
void launch_flag_ping_pong(CUstream stream, const StepPingPong& ping_pong);

/// Plays `rounds` and returns the time of one way in microseconds. `protocol` is one that the
/// ring's memory allows; null: a bare flag, on a communicator that is used for nothing else.
/// Collective, with two ranks. Throws std::runtime_error for a wrong payload.
double step_latency(Rank& rank, RingCommunicator& ring, const Protocol* protocol,
                    std::uint32_t rounds);

}  // namespace symm
