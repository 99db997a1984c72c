#pragma once
/// \file
/// Copies between pageable host memory and a device, and fills of memory. Each is complete when its
/// function returns.
///
/// `cuMemcpyHtoD` may return when its source is in a staging buffer; the transfer from there to the
/// device may still run in the legacy default stream. The streams of stream.hpp do not wait for
/// that stream, so a kernel launched next could read old data.
/// Source: CUDA Driver API, "API synchronization behavior".

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Copies `bytes` bytes to `to`, memory that the current context can reach. Throws CudaError.
void copy_to_device(CUdeviceptr to, const void* from, std::size_t bytes);

/// Copies `bytes` bytes from `from`, memory that the current context can reach. Work of other
/// streams that writes there must have finished. Throws CudaError.
void copy_to_host(void* to, CUdeviceptr from, std::size_t bytes);

/// Zeroes `bytes` bytes at `address`, memory that the current context can reach. It uses the legacy
/// default stream rather than a new one, whose first work may have to wait for running kernels
/// (docs/DESIGN.md). Throws CudaError.
void zero(CUdeviceptr address, std::size_t bytes);
/// The same, with each byte set to `value`.
void fill(CUdeviceptr address, unsigned char value, std::size_t bytes);

}  // namespace symm
