#pragma once
/// \file
/// What the program shows: one allocation, call by call, then a buffer that grows, then a context.

#include <cuda.h>

#include <cstddef>

#include "common/cuda/gpu.hpp"

namespace symm {

/// Prints what the device says of its memory: the attributes that decide which allocations it can
/// take part in. Throws CudaError.
void tell_attributes(const Device& device);

/// Makes one allocation on the device in eight steps, and prints each call with its arguments, its
/// result and its time. After step 5 a kernel writes every word and another reads it back. `bytes`
/// is rounded up to the granularity `which` names. Returns whether all words read were right. Throws
/// CudaError.
bool tell_allocation(const Gpu& gpu, std::size_t bytes, CUmemAllocationGranularity_flags which);

/// Grows a buffer of `bytes` in place to `to` bytes and shrinks it again. At each size it checks
/// that the address has not changed and that every piece holds what was written to it. Returns
/// whether that was so. Throws CudaError.
bool tell_growth(const Gpu& gpu, std::size_t bytes, std::size_t to);

/// Makes a second context beside the device's primary one and uses memory in it. Returns whether
/// what was read was right and the primary context is current again. Throws CudaError.
bool tell_contexts(const Gpu& gpu);

}  // namespace symm
