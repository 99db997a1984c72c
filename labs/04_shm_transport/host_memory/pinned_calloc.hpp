#pragma once
/// \file
/// Zeroed pinned host memory that may be allocated while a stream is being captured.
///
/// While a stream is captured into a graph, the driver forbids calls that might queue work of their
/// own; cuMemAlloc and cuMemHostAlloc are among them. A capture in mode GLOBAL, the default,
/// forbids them even to other threads. The call fails, and the whole capture is lost.
///
/// A thread that is itself in mode RELAXED may make the calls. That is safe here, since nothing is
/// queued: the host writes the zeros. RelaxedCapture (common/cuda/graph.hpp) does this:
///
///     CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
///     cuThreadExchangeStreamCaptureMode(&mode);   // mode now holds the previous one
///     cuMemHostAlloc(...);
///     cuThreadExchangeStreamCaptureMode(&mode);   // restores the previous mode
///
/// Source: NCCL's ncclCudaHostCalloc in src/include/alloc.h; CUDA Driver API,
/// cuThreadExchangeStreamCaptureMode.

#include <cstddef>

#include "common/cuda/pinned_memory.hpp"

namespace symm {

/// `bytes` (not 0) of zeroed, page-locked memory, the same address on the host and on all devices.
/// Throws CudaError.
PinnedMemory pinned_calloc(std::size_t bytes);

}  // namespace symm
