#pragma once
/// \file
/// Starts this lab's kernels from host code that nvcc need not read.

#include <cuda.h>

#include "labs/05_device_prims/kernels.hpp"

namespace symm {

void launch_ping_pong(CUstream stream, const PingPong& kernel);
void launch_barrier_rounds(CUstream stream, const BarrierRounds& kernel, unsigned blocks,
                           unsigned threads);

}  // namespace symm
