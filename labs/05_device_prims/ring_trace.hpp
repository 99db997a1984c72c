#pragma once
/// \file
/// The host's side of a trace: memory for the blocks' records, and what they say.

#include <cstdint>
#include <string>
#include <vector>

#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/trace.hpp"

namespace symm {

/// What a block did for a while.
struct TraceSlice {
    int rank;
    unsigned channel;
    TraceEvent event;
    Move move;
    std::uint64_t received;  ///< The step that comes next from the previous rank.
    std::uint64_t sent;      ///< The step that goes next to the next rank.
    std::uint64_t begin_ns;
    std::uint64_t end_ns;
};

/// The name of a primitive, as in primitives.hpp.
std::string primitive_name(const Move& move);

/// The records of one rank's blocks, in symmetric memory, so that rank 0 can read those of all.
class RingTrace {
public:
    /// Room for `capacity` records per channel; the newest ones are kept. Collective.
    RingTrace(Rank& rank, unsigned channels, std::uint32_t capacity = 4096);

    /// For the calls that are to be recorded.
    TraceBuffers buffers() const;

    /// All ranks' slices since construction, by rank, channel and time, on rank 0; nothing on the
    /// others. Collective, when this rank's kernels have finished.
    std::vector<TraceSlice> collect() const;

private:
    std::size_t counts_bytes() const;
    std::vector<TraceSlice> slices_of(int rank) const;

    Rank& rank_;
    unsigned channels_;
    std::uint32_t capacity_;
    SymmetricRange range_;  ///< Counts of all channels, then their records.
};

}  // namespace symm
