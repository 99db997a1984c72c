#pragma once
/// \file
/// A trace as a file for a viewer, and as a picture.

#include <span>
#include <string>

#include "labs/05_device_prims/ring/ring_trace.hpp"

namespace symm {

/// Chrome's trace format, which https://ui.perfetto.dev opens: a process per rank, a thread per
/// channel, a slice per TraceSlice, and an arrow from the step that sends to the one that receives.
/// Times are microseconds since the first slice. `ranks` is the size of the ring.
/// Source: "Trace Event Format" (JSON object format; phases M, X, s and f).
std::string chrome_trace(std::span<const TraceSlice> slices, int ranks);

/// The same as SVG, of the first `channels` channels: a row per rank, and a line from each step
/// that sends to the one that receives.
std::string trace_picture(std::span<const TraceSlice> slices, int ranks, unsigned channels = 2);

}  // namespace symm
