#pragma once
/// \file
/// A barrier of ranks: each counts the arrivals of the others in its own memory.
///
/// | who       | does                        | to what                              | order   |
/// |-----------|-----------------------------|--------------------------------------|---------|
/// | each rank | stores the barrier's number | a flag in the memory of every peer   | release |
/// | each rank | polls until it is reached   | the flag of every peer, in its own   | acquire |
///
/// A rank may read what its peers wrote before the barrier, and write what they read before it.
///
/// Model of vLLM's custom AllReduce (README.md, "B.1").

#include <cstdint>

#include "labs/05_device_prims/signal.hpp"

namespace symm::bugs_that_shipped {

/// Flags in the memory of one rank; each is written by one peer.
struct Arrivals {
    static constexpr int kMost = 8;  ///< Ranks.
    std::uint32_t from[kMost];
};

/// Tells a peer that `rank` has arrived at barrier `number`. `flags` are the peer's.
__host__ __device__ inline void arrive(Arrivals* flags, int rank, std::uint32_t number) {
    signal(&flags->from[rank], number);
}

/// Waits until all of `ranks` have arrived at barrier `number`. `flags` are this rank's own.
/// Returns false if the wait gave up.
__host__ __device__ inline bool wait_for_all(simt::Waiter& waiter, const Arrivals* flags, int rank,
                                             int ranks, std::uint32_t number) {
    for (int peer = 0; peer < ranks; ++peer) {
        if (peer != rank &&
            !wait_signal(waiter, &flags->from[peer], {simt::Wait::kBarrier, rank, peer, number})) {
            return false;
        }
    }
    return true;
}

}  // namespace symm::bugs_that_shipped
