#pragma once
/// \file
/// Who may access a mapping.
///
/// Memory (`cuMemCreate`) that is mapped at an address (`cuMemMap`) is closed to everybody.
/// `cuMemSetAccess` opens it to devices and to the host:
///
///     cuMemSetAccess(address, bytes, list of {location, none | read | read and write})
///
/// - The call sets the rights of the locations in its list and leaves those of all others as they
///   were. So rights can be given at once, one by one or later, and can be taken away again.
/// - The device that the memory belongs to needs an entry too: without one it may not access its
///   own memory.
/// - A peer needs no cuCtxEnablePeerAccess. That older call opens every cuMemAlloc of a device to
///   another device; here each mapping has its own rights.
/// - The range has to consist of whole mappings: half a mapping cannot have other rights.
///
/// Source: CUDA Driver API, cuMemSetAccess, cuMemGetAccess; NCCL's ncclMemAlloc in
/// src/allocator.cc, which calls it once per device.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace symm {

/// Gives `devices` access to the mappings that fill [at, at + bytes), with one call for all. An
/// empty list changes nothing. Throws CudaError; all rights are then as they were before.
void allow(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// The same with one call per device, as NCCL does it. The rights are the same, the time may
/// differ. Throws CudaError; the devices before the one that failed keep what they were given.
void allow_one_by_one(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
                      CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Gives the host access to memory of the host's NUMA node `node`. For device memory the driver
/// refuses this. Throws CudaError.
void allow_host(CUdeviceptr at, std::size_t bytes, int node,
                CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Takes access away from `devices`. A kernel that is still using the memory then faults: wait for
/// it first. Throws CudaError.
void forbid(CUdeviceptr at, std::size_t bytes, std::span<const int> devices);

/// What `device` may do at the mapped address `at`. Throws CudaError.
CUmemAccess_flags access_of(CUdeviceptr at, int device);

/// What the host may do at `at`, where memory of NUMA node `node` is mapped. Throws CudaError.
CUmemAccess_flags host_access_of(CUdeviceptr at, int node);

/// `none`, `read`, `read/write`.
std::string_view name_of(CUmemAccess_flags flags);

/// 0, 1, ... for all devices that the driver sees.
std::vector<int> all_devices();

/// The devices that can be given access to memory of device `owner`: itself, and those for which
/// cuDeviceCanAccessPeer says yes.
std::vector<int> devices_that_reach(int owner);

}  // namespace symm
