#pragma once
/// \file
/// From numbers known when a program runs (type, ranks) to the kernel compiled for them.

#include <cuda.h>

#include "common/cuda/gpu.hpp"
#include "labs/05_device_prims/data_type.hpp"
#include "labs/06_allreduce/one_shot.hpp"
#include "labs/06_allreduce/sentinel.hpp"
#include "labs/06_allreduce/two_shot.hpp"
#include "labs/06_allreduce/two_shot_copy.hpp"

namespace symm {

/// How many blocks of the kernel, of `threads` threads each, the current device keeps resident.
unsigned one_shot_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned sentinel_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned two_shot_resident_blocks(DataType type, int ranks, unsigned threads);

/// Queue the kernel. Throw CudaError. The sentinel is for floating types only.
void launch_one_shot(CUstream stream, LaunchShape shape, DataType type, const OneShotCall& call);
void launch_sentinel(CUstream stream, LaunchShape shape, DataType type, const SentinelCall& call);
void launch_two_shot(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call);
void launch_meet(CUstream stream, const Meet& meet);
void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType type,
                         const ReducePieceCall& call);

}  // namespace symm
