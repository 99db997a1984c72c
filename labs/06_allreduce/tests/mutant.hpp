#pragma once
/// \file
/// The mutants' kernels, apart from their ranks: nvcc reads the one, a C++20 compiler the other.

#include <cuda.h>

#include <cstddef>

#include "common/simt/timeout.hpp"
#include "labs/05_device_prims/barrier.hpp"

namespace symm {

/// What each of the two ranks has in symmetric memory.
struct MutantMemory {
    static constexpr unsigned kElements = 256;
    BarrierMemory barrier;
    alignas(16) float in[kElements];
    alignas(16) float out[kElements];
};

/// Zeroes the flags.
void launch_reset(CUstream stream, MutantMemory* memory);
/// Writes the input of `rank`, and poisons the output.
void launch_prepare(CUstream stream, MutantMemory* memory, int rank);
/// The two-shot AllReduce of all elements but the last.
void launch_reduce(CUstream stream, MutantMemory* first, std::size_t stride, int rank,
                   const simt::Timeout& timeout);
/// Adds to `wrong` the elements that are not the sum; the last never is.
void launch_compare(CUstream stream, const MutantMemory* memory, unsigned* wrong);

}  // namespace symm
