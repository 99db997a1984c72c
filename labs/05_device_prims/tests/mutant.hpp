#pragma once
/// \file
/// The mutants' kernels, apart from their ranks: nvcc reads the one, a C++20 compiler the other.

#include <cuda.h>

#include "common/simt/timeout.hpp"
#include "labs/05_device_prims/kernels.hpp"

namespace symm {

/// Makes fresh memory of `memory`.
void launch_zero(CUstream stream, LatencyTestMemory* memory);
/// Twenty balls to and fro, then twenty barriers, of two ranks whose memories are `stride` bytes
/// apart.
void launch_games(CUstream stream, LatencyTestMemory* first, std::size_t stride, int rank,
                  const simt::Timeout& timeout);

}  // namespace symm
