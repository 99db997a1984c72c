#pragma once
/// \file
/// The program's story: one allocation, call by call, then a buffer that grows.

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Tells the eight steps of one allocation on `device`, prints each call with its arguments, result
/// and time. Between the steps up and the steps down every word is written and read back. `bytes` is
/// rounded up to the granularity `which` names. Needs a current context. Returns whether all that was
/// read was right; throws CudaError.
bool tell_allocation(int device, std::size_t bytes, CUmemAllocationGranularity_flags which);

/// Tells how a buffer of `bytes` grows in place to `to` bytes and shrinks again; checks at each size
/// that the pointer stayed and every piece holds what was written to it. Returns whether that was
/// so; throws CudaError.
bool tell_growth(int device, std::size_t bytes, std::size_t to);

/// Tells what a context of one's own is, beside the primary one. Returns whether what was read in
/// it was right and the primary one is current afterwards; throws CudaError.
bool tell_contexts(int device);

}  // namespace symm
