#pragma once
/// \file
/// Lab 04's connections between neighbours of a ring, in the memory of their GPUs.
///
/// Every rank has in symmetric memory, at the same offsets, the words it polls and the slots it
/// receives into:
///
///     rank r:  [ SendMem of r -> r+1 | RecvMem of r-1 -> r | steps of both | slots of r-1 -> r ]
///
/// So a store crosses the link once, and polls and loads stay local.

#include <cstddef>
#include <cstdint>

#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/04_shm_transport/connection/fifo_memory.hpp"

namespace symm {

/// The connections of one protocol. Construction is collective.
class PeerConnections {
public:
    /// `slot_bytes` is a multiple of 128, for LL of 256 and for LL128 of 2048, so that a chunk is
    /// whole (ring_chunk()); both numbers are the same on all ranks. If it fails on one rank, it
    /// throws on all ranks.
    PeerConnections(Rank& rank, std::uint32_t channels, std::uint64_t slot_bytes);

    const Connection& to_next() const { return to_next_; }
    const Connection& from_prev() const { return from_prev_; }

private:
    SymmetricRange range_;
    Connection to_next_;
    Connection from_prev_;
};

}  // namespace symm
