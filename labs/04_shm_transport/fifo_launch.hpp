#pragma once
/// \file
/// Queues the kernel of fifo_kernels.hpp, for code that nvcc does not see.

#include <cuda.h>

#include "labs/04_shm_transport/fifo_kernels.hpp"

namespace symm {

/// Queues the transfer with `threads` threads a block; queues nothing where there is nothing to
/// move. Throws CudaError.
void launch_transfer(CUstream stream, unsigned threads, const TransferKernel& transfer);

}  // namespace symm
