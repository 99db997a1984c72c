#pragma once
/// \file
/// Zeroed pinned host memory that may be allocated while a stream is being captured:
///
/// 1. The thread's capture mode becomes RELAXED (RelaxedCapture of common/cuda/graph.hpp), so that
///    the driver does not refuse the call, and the capture goes on.
/// 2. cuMemHostAlloc allocates, and the host writes the zeros: nothing is queued.
/// 3. The thread's mode becomes what it was.
///
/// README.md explains why. Source: NCCL's ncclCudaHostCalloc in src/include/alloc.h; CUDA Driver
/// API, cuThreadExchangeStreamCaptureMode.

#include <cstddef>

#include "common/cuda/pinned_memory.hpp"

namespace symm {

/// `bytes` (not 0) of zeroed, page-locked memory, the same address on the host and on all devices.
/// Throws CudaError.
[[nodiscard]] PinnedMemory pinned_calloc(std::size_t bytes);

}  // namespace symm
