#pragma once
/// \file
/// Access rights of a mapping, and memory of one device that several devices access.
///
/// Memory (`cuMemCreate`) that is mapped at an address (`cuMemMap`) cannot be used by any device.
/// `cuMemSetAccess` opens it to devices and to the host:
///
///     cuMemSetAccess(address, bytes, list of {location, none | read | read and write})
///
/// - The call sets the rights of the locations in its list and leaves those of all others as they
///   were. So rights can be given at once, one by one or later, and can be taken away again.
/// - Even the device that the memory belongs to needs an entry: without one it may not access its
///   own memory.
/// - A peer needs no cuCtxEnablePeerAccess. That older call gives another device access to all
///   cuMemAlloc memory of a device; here each mapping has its own rights.
/// - The range must consist of whole mappings: part of a mapping cannot have rights of its own.
///
/// Source: CUDA Driver API, cuMemSetAccess, cuMemGetAccess; NCCL's ncclMemAlloc in
/// src/allocator.cc, which calls it once per device.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "labs/01_vmm_alloc/device_buffer.hpp"

namespace symm {

/// Gives `devices` access to the mappings that fill [at, at + bytes), with one call for all. An
/// empty list changes nothing. CU_MEM_ACCESS_FLAGS_PROT_NONE takes access away: a kernel that is
/// still using the memory then faults, so wait for it first. Throws CudaError; all rights are then
/// as they were before.
void allow(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Lets the host read and write memory of its NUMA node `node`. For device memory the driver
/// refuses this on most machines. Throws CudaError.
void allow_host(CUdeviceptr at, std::size_t bytes, int node);

/// The rights of device `id` at the mapped address `at`; with CU_MEM_LOCATION_TYPE_HOST_NUMA, the
/// rights of the host to memory of its node `id`. Throws CudaError.
CUmemAccess_flags access_of(CUdeviceptr at, int id,
                            CUmemLocationType type = CU_MEM_LOCATION_TYPE_DEVICE);

/// `none`, `read`, `read/write`.
std::string_view name_of(CUmemAccess_flags flags);

/// The host's NUMA node nearest to `device` (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID); 0 if the driver
/// names none. Throws CudaError.
int host_node_of(int device);

/// Memory of one device, at one address that is valid on all its users: a pointer into it can be
/// given to a kernel on any of them. Move-only. Destruction does not wait for kernels.
class SharedBuffer : public MappedMemory {
public:
    /// At least `bytes` (not 0) of device `owner`, rounded up to the granularity, which `users` and
    /// the owner itself may read and write. Throws CudaError (CUDA_ERROR_INVALID_DEVICE, for
    /// example, if a user is not a peer of the owner), and then leaves nothing behind.
    SharedBuffer(int owner, std::size_t bytes, std::span<const int> users);
};

}  // namespace symm
