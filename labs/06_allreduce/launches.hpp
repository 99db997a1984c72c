#pragma once
/// \file
/// From numbers known when a program runs (type, ranks) to the kernel compiled for them.

#include <cuda.h>

#include <cstddef>

#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/data_type.hpp"
#include "labs/06_allreduce/one_shot.hpp"

namespace symm {

/// Blocks of a launch, and threads per block.
struct Shape {
    unsigned blocks;
    unsigned threads;
};

/// What both kernels need to know of a call.
struct CallArguments {
    DataType type;
    std::size_t count;
    simt::Timeout timeout;
    int rank;
    int ranks;  ///< 1 to kMaxAllReduceRanks.
};

/// Where one-shot calls have their memory.
struct OneShotArguments {
    CUdeviceptr in;
    CUdeviceptr out;
    OneShotMemory* memory;
    simt::Pack16* scratch;
    std::size_t stride;
    std::size_t packets_per_bank;
};

/// Where two-shot calls find all ranks' buffers.
struct TwoShotArguments {
    CUdeviceptr in_of_rank_0;
    std::size_t in_stride;
    CUdeviceptr out_of_rank_0;
    std::size_t out_stride;
    BarrierMemory* barrier_of_rank_0;
    std::size_t barrier_stride;
};

/// How many blocks of the kernel, of `threads` threads each, the current device keeps resident.
unsigned one_shot_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned two_shot_resident_blocks(DataType type, int ranks, unsigned threads);

/// Queue the kernel. Throw CudaError.
void launch_one_shot(CUstream stream, Shape shape, const CallArguments& call,
                     const OneShotArguments& where);
void launch_two_shot(CUstream stream, Shape shape, const CallArguments& call,
                     const TwoShotArguments& where);

}  // namespace symm
