#pragma once
/// \file
/// The parts of a step.

#include <cuda_runtime.h>

namespace symm {

/// The parts of one step of a primitive, which its name lists: recv_reduce_copy receives, reduces
/// the received data with the source, and writes the output.
struct Move {
    bool receive = false;
    bool send = false;
    bool source = false;  ///< Reads the user's input.
    bool output = false;  ///< Writes the user's output.
    /// The received data is already in the output: the sender stored it there.
    bool received_in_place = false;
    /// The sent data is stored into the next rank's output.
    bool sent_in_place = false;

    /// All ranks' elements have been combined: in these collectives the rank that adds the last
    /// elements writes the result to its output.
    __host__ __device__ constexpr bool completes() const { return receive && source && output; }
};

}  // namespace symm
