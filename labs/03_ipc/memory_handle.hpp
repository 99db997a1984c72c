#pragma once
/// \file
/// Handles: how memory leaves one process and arrives in another, and which process frees it.
///
/// A handle is a file descriptor (POSIX, README.md), or 64 bytes (FABRIC), which may be sent in any
/// way, even to other hosts of the same NVLink fabric. The memory must have been created for that
/// kind (CUmemAllocationProp::requestedHandleTypes). A handle does not contain the size of the
/// memory: send the size as well.
///
/// cuMemImportFromShareableHandle makes a second handle of the same physical memory. The importer
/// maps it and gives access to it as if it had created it. The driver counts the references of all
/// processes together, and frees the memory with the last one:
///
/// | reference                      | made by        | owner          | given back                |
/// |--------------------------------|----------------|----------------|---------------------------|
/// | the exporter's file descriptor | export_fd()    | UniqueFd       | close(), once it was sent |
/// | the importer's file descriptor | SCM_RIGHTS     | UniqueFd       | close(), once imported    |
/// | the handle, on both sides      | create, import | PhysicalMemory | cuMemRelease, once mapped |
/// | the mapping, on both sides     | cuMemMap       | Mapping        | cuMemUnmap, at the end    |
///
/// So the exporter may end first: the importers' mappings keep the memory. A file descriptor that
/// was sent but not yet received is a reference as well, which the operating system holds.
///
/// Source: CUDA Driver API, "Virtual Memory Management"; NCCL's ncclP2pAllocateShareableBuffer and
/// ncclP2pImportShareableBuffer in src/transport/p2p.cc.

#include <cuda.h>

#include <cstddef>

#include "common/sys/descriptor.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

class Rank;

/// Exports the memory as a file descriptor. Throws CudaError.
UniqueFd export_fd(const PhysicalMemory& memory);

/// The memory as 64 bytes. Throws CudaError.
CUmemFabricHandle export_fabric(const PhysicalMemory& memory);

/// The memory of a handle; the caller keeps the handle. `bytes` is the size that the exporter
/// sent. Throws CudaError for a handle of anything else.
PhysicalMemory import_memory(const UniqueFd& fd, std::size_t bytes);
PhysicalMemory import_memory(const CUmemFabricHandle& handle, std::size_t bytes);

/// Throws std::runtime_error, with advice, if the GPU of `rank` cannot reach the memory of
/// the GPU of `peer`. Call it before cuMemSetAccess, which would only return
/// CUDA_ERROR_INVALID_DEVICE. A GPU that this process cannot see (CUDA_VISIBLE_DEVICES) is not
/// checked.
void require_peer_access(const Rank& rank, int peer);

}  // namespace symm
