#pragma once
/// \file
/// Zeroed pinned host memory that may be allocated while a stream is being captured.
///
/// While a stream is captured into a graph, the driver forbids calls that might queue work of their
/// own (the manual: "potentially unsafe"); cuMemAlloc and cuMemHostAlloc are among them. A library
/// allocates when it needs memory, for example at the first call with a new peer, and its user may
/// be capturing just then. A capture in mode GLOBAL, the default, forbids such calls even to
/// other threads. The call fails, and the whole capture is lost.
///
/// Each thread has a mode of its own for this, GLOBAL at first, and can exchange it. A thread in
/// mode RELAXED may make the calls. That is safe here, since nothing is queued: the host writes
/// the zeros.
///
///     CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
///     cuThreadExchangeStreamCaptureMode(&mode);   // mode now holds the previous one
///     cuMemHostAlloc(...);
///     cuThreadExchangeStreamCaptureMode(&mode);   // restores the previous mode
///
/// Source: NCCL's ncclCudaHostCalloc in src/include/alloc.h; CUDA Driver API,
/// cuThreadExchangeStreamCaptureMode.

#include <cuda.h>

#include <cstddef>

#include "common/cuda/pinned_memory.hpp"

namespace symm {

/// While it lives, the calling thread may make calls that captures forbid.
class RelaxedCaptureMode {
public:
    /// Throws CudaError.
    RelaxedCaptureMode();
    RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
    ~RelaxedCaptureMode() { exchange(); }

private:
    CUresult exchange() { return cuThreadExchangeStreamCaptureMode(&mode_); }
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// `bytes` (not 0) of zeroed, page-locked memory, the same address on the host and on all devices.
/// Throws CudaError.
PinnedMemory pinned_calloc(std::size_t bytes);

}  // namespace symm
