#pragma once
/// \file
/// Memory arrives in a process, and who frees it.
///
/// cuMemImportFromShareableHandle makes a second handle of the same physical memory. From there on
/// it is mapped and given access as if it had been created here. The driver counts references, in
/// all processes together; the memory is freed with the last one:
///
/// | reference                        | made by          | owner          | given back                |
/// |----------------------------------|------------------|----------------|---------------------------|
/// | the exporter's file descriptor   | export_fd()      | UniqueFd       | close(), once it was sent |
/// | the importer's file descriptor   | SCM_RIGHTS       | UniqueFd       | close(), once imported    |
/// | the handle, on both sides        | create, import   | PhysicalMemory | cuMemRelease, once mapped |
/// | the mapping, on both sides       | cuMemMap         | Mapping        | cuMemUnmap, at the end    |
///
/// So each process gives back its own references, and the exporter may end first: the importers'
/// mappings keep the memory.
///
/// Source: CUDA Driver API, "Virtual Memory Management"; NCCL's ncclP2pImportShareableBuffer in
/// src/transport/p2p.cc.

#include <cuda.h>

#include <cstddef>

#include "common/sys/descriptor.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// The memory behind a file descriptor, which stays the caller's. `bytes` is the size that the
/// exporter sent. Throws CudaError for a descriptor of anything else.
PhysicalMemory import_fd(const UniqueFd& fd, std::size_t bytes);

/// The memory behind the 64 bytes of export_fabric(). Throws CudaError.
PhysicalMemory import_fabric(const CUmemFabricHandle& handle, std::size_t bytes);

/// Throws std::runtime_error, with what to do, where kernels of `device` cannot reach memory of
/// device `owner`; CudaError. Call it before anything is created: cuMemSetAccess would only answer
/// CUDA_ERROR_INVALID_DEVICE. An owner that this process does not see is not checked.
void require_peer_access(int device, int owner);

}  // namespace symm
