#pragma once
/// \file
/// The program in parts: one allocation, call by call, then a buffer that grows, then a context.

#include <cstddef>

#include "common/cuda/gpu.hpp"

namespace symm {

/// Prints the attributes that say which kinds of allocation the device supports. Throws CudaError.
void tell_attributes(int device);

/// Makes one allocation in eight steps, and prints each call with its arguments, its result and its
/// time. After step 5 a kernel writes every word and another kernel compares it. `bytes` is rounded
/// up to the granularity. Returns whether all words were right. Throws CudaError.
bool tell_allocation(const Gpu& gpu, std::size_t bytes);

/// Grows a buffer of `bytes` in place to `to` bytes and shrinks it again. Returns whether the
/// address never changed and every piece held what was written to it. Throws CudaError.
bool tell_growth(const Gpu& gpu, std::size_t bytes, std::size_t to);

/// Makes a second context besides the device's primary one and uses memory in it. Returns whether
/// the data read was right and the primary context is current again. Throws CudaError.
bool tell_contexts(const Gpu& gpu);

}  // namespace symm
