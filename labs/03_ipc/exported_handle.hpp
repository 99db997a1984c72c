#pragma once
/// \file
/// Memory leaves a process: as a file descriptor, or as the 64 bytes of a FABRIC handle.
///
/// An address means something in one process only. What can be sent is a handle of the physical
/// memory, and cuMemExportToShareableHandle makes one:
///
/// - POSIX: a file descriptor. It is a number in this process's table of open files, so the kernel
///   has to copy the entry into the other process's table: a UNIX socket does that for descriptors
///   sent as SCM_RIGHTS (send_packet() in common/sys/socket.cpp).
/// - FABRIC: 64 bytes, which may be sent in any way, to other hosts of one NVLink fabric too.
///
/// The memory must have been created for that kind (CUmemAllocationProp::requestedHandleTypes). Its
/// size is not part of the handle: send it as well.
///
/// A file descriptor is a reference to the memory. The UniqueFd closes it; while one is open in any
/// process, the memory is not freed. imported_memory.hpp shows all references in one table.
///
/// Source: CUDA Driver API, "Virtual Memory Management"; NCCL's ncclP2pAllocateShareableBuffer in
/// src/transport/p2p.cc.

#include <cuda.h>

#include "common/sys/descriptor.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// A file descriptor of the memory. Throws CudaError.
UniqueFd export_fd(const PhysicalMemory& memory);

/// The memory as 64 bytes. Throws CudaError.
CUmemFabricHandle export_fabric(const PhysicalMemory& memory);

}  // namespace symm
