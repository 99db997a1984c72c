#pragma once
/// \file
/// What a step can do.

#include <cuda_runtime.h>

namespace symm {

/// What one step of a primitive does. Its name says it too: recv_reduce_copy receives, reduces what
/// came with the source, and writes the output.
struct Move {
    bool receive = false;
    bool send = false;
    bool source = false;  ///< Reads the user's input.
    bool output = false;  ///< Writes the user's output.
    /// What is received is in the output already, because the sender stored it there.
    bool received_in_place = false;
    /// What is sent is stored into the next rank's output.
    bool sent_in_place = false;

    /// All ranks' elements have been combined: in these collectives the rank that adds the last
    /// ones writes them to its output.
    __host__ __device__ constexpr bool completes() const { return receive && source && output; }
};

}  // namespace symm
