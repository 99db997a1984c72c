#pragma once
/// \file
/// Memory leaves a process, and arrives in another.
///
///     exporter                          importer
///     cuMemExportToShareableHandle      cuMemImportFromShareableHandle
///        |  descriptor (or 64 bytes)        ^
///        +---------- SCM_RIGHTS ------------+
///
/// What arrives is one more reference to the same physical memory: it is mapped and given access in
/// the importer as if made there, and lives until the last reference of any process has gone. The
/// descriptor is a reference too: close it once it is sent and once it is imported, or the memory
/// never goes. Source: CUDA Driver API, "Virtual Memory Management"; NCCL's
/// ncclP2pImportShareableBuffer in src/transport/p2p.cc.

#include <cuda.h>

#include <cstddef>

#include "common/sys/descriptor.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// A descriptor of the memory, which must have been made with that kind of handle. Throws
/// CudaError.
UniqueFd export_descriptor(const PhysicalMemory& memory);

/// The memory behind a descriptor, which stays the caller's. `bytes` is what the exporter says its
/// size is; mapping more fails. Throws CudaError for a descriptor of anything else.
PhysicalMemory import_descriptor(const UniqueFd& descriptor, std::size_t bytes);

/// The memory as 64 bytes for any process on the NVLink fabric. Throws CudaError.
CUmemFabricHandle export_fabric(const PhysicalMemory& memory);

/// The memory behind 64 such bytes. Throws CudaError.
PhysicalMemory import_fabric(const CUmemFabricHandle& handle, std::size_t bytes);

}  // namespace symm
