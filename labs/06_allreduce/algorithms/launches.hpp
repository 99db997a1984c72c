#pragma once
/// \file
/// From numbers known when a program runs (type, ranks) to the kernel compiled for them.

#include <cuda.h>

#include "common/cuda/gpu.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm {

struct EndOfRound;
struct ReducePieceCall;
struct ChunksCall;
struct ScratchCall;
struct TwoShotCall;
struct Unpack;

/// Ranks of an AllReduce. For more than kMaxRanksOnGpus, kernels exist for emulated GPUs only.
inline constexpr int kMaxRanksOnGpus = 8;
inline constexpr int kMaxAllReduceRanks = 16;

/// How many blocks of the kernel, of `threads` threads each, the current device keeps resident.
unsigned halves_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned one_shot_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned sentinel_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned two_shot_chunks_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned two_shot_push_resident_blocks(DataType type, int ranks, unsigned threads);
unsigned two_shot_resident_blocks(DataType type, int ranks, unsigned threads);

/// Queue the kernel. Throw CudaError. The sentinel and push are for floating types only.
void launch_one_shot(CUstream stream, LaunchShape shape, DataType type, const ScratchCall& call);
void launch_sentinel(CUstream stream, LaunchShape shape, DataType type, const ScratchCall& call);
void launch_two_shot_push(CUstream stream, LaunchShape shape, DataType type,
                          const ScratchCall& call);
void launch_two_shot(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call);
void launch_two_shot_chunks(CUstream stream, LaunchShape shape, DataType type,
                            const ChunksCall& call);
void launch_reduce_scatter_packets(CUstream stream, LaunchShape shape, DataType type,
                                   const ScratchCall& call);
/// `count` and `stride` are bytes.
void launch_all_gather_packets(CUstream stream, LaunchShape shape, const ScratchCall& call);
void launch_end_of_round(CUstream stream, const EndOfRound& end);
void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType type,
                         const ReducePieceCall& call);
void launch_unpack(CUstream stream, LaunchShape shape, const Unpack& unpack);

}  // namespace symm
