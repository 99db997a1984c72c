#pragma once
/// \file
/// The older way to share memory: cuIpcGetMemHandle and cuIpcOpenMemHandle.
///
/// The handle is 64 bytes that any process of the same user on the same host can open. It cannot:
/// - share cuMemCreate's memory: CUDA_ERROR_INVALID_VALUE;
/// - be opened in the same process: CUDA_ERROR_INVALID_CONTEXT. So ranks that are threads cannot
///   use it;
/// - choose the address, or share a part: the whole allocation is opened where the driver likes, so
///   no symmetric range can be built from it;
/// - outlive the exporter: when the exporter frees the memory, the importers' access is undefined.
///
/// Source: CUDA Driver API, cuIpcGetMemHandle, cuIpcOpenMemHandle; NCCL's src/transport/p2p.cc
/// (the `!ncclCuMemEnable()` branches).

#include <cuda.h>

#include <string>

#include "common/ranks/rank.hpp"

namespace symm {

/// Collective: every rank shares a cuMemAlloc allocation in this way and reads its right
/// neighbour's. `vmm_memory` is memory of cuMemCreate, which cuIpcGetMemHandle must refuse.
/// Returns what happened, one line each. Throws if the driver does not answer as described
/// above, or data is wrong. Needs the rank's context current.
std::string walk_legacy_ipc(Rank& rank, CUdeviceptr vmm_memory);

}  // namespace symm
