#pragma once
/// \file
/// Copies between pageable host memory and a device that have ended when they return.
///
/// `cuMemcpyHtoD` alone returns when it has copied its source aside, while the last bytes may still
/// be on their way in the legacy default stream. The streams of stream.hpp do not wait for that
/// stream, so a kernel launched next could read what was there before.
/// Source: CUDA Driver API, "API synchronization behavior".

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Copies `bytes` bytes to `to`, memory that the current context can reach. Throws CudaError.
void copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes);

/// Copies `bytes` bytes from `from`, memory that the current context can reach. Work of other
/// streams that writes there has to be over. Throws CudaError.
void copy_to_host(void* to, CUdeviceptr from, std::size_t bytes);

}  // namespace symm
