#pragma once
/// \file
/// The host's side of a trace: memory for the blocks' records, their evaluation, and the file.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/ring/ring_communicator.hpp"
#include "labs/05_device_prims/ring/trace.hpp"

namespace symm {

/// One activity of a block, with its start and end.
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

/// Calls `use(sender, receiver)` for the two slices of each step of a ring of `ranks`.
template <class Use>
void for_steps(std::span<const TraceSlice> slices, int ranks, const Use& use) {
    std::map<std::tuple<int, unsigned, std::uint64_t>, const TraceSlice*> receivers;
    for (const TraceSlice& slice : slices) {
        if (slice.event == TraceEvent::kMove && slice.move.receive) {
            receivers[{slice.rank, slice.channel, slice.received}] = &slice;
        }
    }
    for (const TraceSlice& slice : slices) {
        if (slice.event == TraceEvent::kMove && slice.move.send) {
            const auto found =
                receivers.find({(slice.rank + 1) % ranks, slice.channel, slice.sent});
            if (found != receivers.end()) {
                use(slice, *found->second);
            }
        }
    }
}

/// The records of one rank's blocks, in symmetric memory, so that rank 0 can read those of all.
class RingTrace {
public:
    /// Room for `capacity` records per channel; the newest ones are kept. Collective.
    RingTrace(Rank& rank, unsigned channels, std::uint32_t capacity = 4096);

    /// For the calls that are to be recorded.
    TraceBuffers buffers() const;

    /// All ranks' slices since construction, by rank, channel and time, on rank 0; nothing on the
    /// others. Times are those of each rank's GPU. Collective, when this rank's kernels have
    /// finished.
    std::vector<TraceSlice> collect() const;

private:
    std::size_t counts_bytes() const;
    std::vector<TraceSlice> slices_of(int rank) const;

    Rank& rank_;
    unsigned channels_;
    std::uint32_t capacity_;
    SymmetricRange range_;  ///< Counts of all channels, then their records.
};

/// By how many nanoseconds the clock of each rank's GPU is ahead of rank 0's: on two H200s we saw
/// 40 to 130 us. `slices` are from one or more AllReduces. Each link's fastest step has taken the
/// time of a trip plus the difference of two clocks. Once around the ring the differences add up to
/// 0, so the sum is the time of `ranks` trips; all trips are assumed to be equally long.
std::vector<std::int64_t> clock_offsets(std::span<const TraceSlice> slices, int ranks);

/// Makes a call of a ring, and returns the result of collect(), with times by rank 0's clock.
/// Collective. Needs the rank's context current, as RingTrace does.
std::vector<TraceSlice> record_call(Rank& rank, RingCommunicator& ring, const Stream& stream,
                                    RingRequest call);

/// Chrome's trace format, which https://ui.perfetto.dev opens: a process per rank, a thread per
/// channel, a slice per TraceSlice, and an arrow from the step that sends to the one that receives.
/// Times are microseconds since the first slice. `ranks` is the size of the ring.
/// Source: "Trace Event Format" (JSON object format; phases M, X, s and f).
std::string chrome_trace(std::span<const TraceSlice> slices, int ranks);

}  // namespace symm
