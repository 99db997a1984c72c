#pragma once
/// \file
/// The older way to share: cuIpcGetMemHandle and cuIpcOpenMemHandle.
///
/// 64 bytes that any process of this user and host can open: no descriptor, no socket, any pipe
/// will do. NCCL used it for all its peers before cuMem, and does where NCCL_CUMEM_ENABLE=0. What
/// it cannot do:
/// - memory of cuMemCreate: CUDA_ERROR_INVALID_VALUE. The 64 bytes name one allocation of the driver's own,
///   an address with the memory behind it, and here the two are apart: the same memory may stand at many
///   addresses, and at one address now this, now that. What is shared there is the memory, by its handle;
/// - the same process: CUDA_ERROR_INVALID_CONTEXT. Ranks that are threads need another way;
/// - choose the address, or share a part: the whole allocation comes, wherever the driver likes, so
/// no
///   symmetric range can be built of it;
/// - outlive its maker: when the exporter frees the memory, importers are left with undefined
/// behaviour.
///
/// Source: CUDA Driver API, cuIpcGetMemHandle, cuIpcOpenMemHandle; NCCL's src/transport/p2p.cc
/// (the `!ncclCuMemEnable()` branches).

#include <cuda.h>

#include <string>

#include "common/sys/owner.hpp"
namespace symm {

/// The handle of an allocation of cuMemAlloc. Throws CudaError for other memory.
CUipcMemHandle legacy_handle(CUdeviceptr pointer);

/// Owns another process's allocation, opened here. Move-only.
class LegacyImport : public Owner<LegacyImport, CUdeviceptr> {
public:
    /// Throws CudaError. Needs a current context.
    explicit LegacyImport(const CUipcMemHandle& handle);
    CUdeviceptr address() const { return value_; }
    static void give_back(CUdeviceptr address);
};

class Rank;

/// Collective: every rank shares a cuMemAlloc allocation the old way and reads its right
/// neighbour's. `vmm_memory` is some memory of cuMemCreate, to be refused. Returns what happened, a
/// line each. Throws where the driver does otherwise than described above, or data is wrong.
std::string walk_legacy_ipc(Rank& rank, CUdeviceptr vmm_memory);

}  // namespace symm
