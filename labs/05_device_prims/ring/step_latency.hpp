#pragma once
/// \file
/// The latency of a primitive: eight bytes sent back and forth between ranks 0 and 1, by send() and
/// recv() of a protocol, or as a bare flag in the same memory.

#include <cstdint>

#include "labs/05_device_prims/ring/ring_communicator.hpp"

namespace symm {

/// Runs `rounds` and returns the time of one way in microseconds. `protocol` is one that the
/// ring's memory allows; null: a bare flag, on a communicator that is used for nothing else.
/// Collective, with two ranks. Throws std::runtime_error for a wrong payload.
double step_latency(Rank& rank, RingCommunicator& ring, const Protocol* protocol,
                    std::uint32_t rounds);

}  // namespace symm
