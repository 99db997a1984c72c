#pragma once
/// \file
/// Who may touch a mapping: the third of the three things that make memory usable.
///
/// Memory (`cuMemCreate`) that stands at an address (`cuMemMap`) is still closed to everybody.
/// `cuMemSetAccess` opens it, for each device by itself and for the host by itself:
///
///     cuMemSetAccess(address, bytes, list of {location, none | read | read and write})
///
/// - The list replaces the rights of the locations it names and leaves all others as they were, so
///   rights can be given at once, one by one, later, and be taken away again.
/// - The owner of the memory is no exception: without an entry it may not touch its own memory.
/// - A peer needs no cuCtxEnablePeerAccess. That older call opens every cuMemAlloc of a device to
///   another; here each mapping says for itself who may come in.
/// - The range is made of whole mappings: rights of half a mapping cannot be set.
///
/// Source: CUDA Driver API, cuMemSetAccess, cuMemGetAccess; NCCL's ncclMemAlloc in
/// src/allocator.cc, which calls it once for each device.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <vector>

namespace symm {

/// Gives `devices` access to the mappings that fill [at, at + bytes), with one call for all. An
/// empty list changes nothing. Throws CudaError; rights are then as they were before.
void allow(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
           CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// The same with a call for each device, as NCCL does it: the rights are the same, the driver's
/// work is not. Throws CudaError; devices before the one that failed keep what they were given.
void allow_one_by_one(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
                      CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Gives the host access, to memory of the host's NUMA node `node` only: device memory is refused
/// (on PCIe machines the processor has no such path). Throws CudaError.
void allow_host(CUdeviceptr at, std::size_t bytes, int node,
                CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

/// Takes access away from `devices`. A kernel that still runs is not stopped, it faults: wait for
/// it first. Throws CudaError.
void forbid(CUdeviceptr at, std::size_t bytes, std::span<const int> devices);

/// What `device` may do at the mapped address `at`. Throws CudaError.
CUmemAccess_flags access_of(CUdeviceptr at, int device);

/// What the host may do at `at`, where memory of NUMA node `node` is mapped. Throws CudaError.
CUmemAccess_flags host_access_of(CUdeviceptr at, int node);

/// `none`, `read`, `read/write`.
const char* words(CUmemAccess_flags flags);

/// 0, 1, ... for all devices that the driver sees.
std::vector<int> all_devices();

/// The devices of this machine that may be given access to memory of `owner`: itself, and those
/// that cuDeviceCanAccessPeer calls its peers.
std::vector<int> devices_that_reach(int owner);

}  // namespace symm
