#pragma once
/// \file
/// What kind of physical memory is asked for, and in which units it comes.
///
/// `cuMemCreate` takes no bare size: it takes a CUmemAllocationProp that says where the memory lies
/// (a device, or a NUMA node of the host) and how its handle may leave the process. The memory
/// comes in whole granules, 2 MiB on every GPU so far, and every size and address of the virtual
/// memory functions is a multiple of that.
///
/// Source: CUDA Driver API, "Virtual Memory Management"; NCCL's src/include/alloc.h fills the same
/// structure in ncclCuMemAlloc.

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Memory of one device, pinned, whose handle may be exported as `handle_types` says (a bit set of
/// CUmemAllocationHandleType, 0 for none). Handles that are not asked for here cannot be had later.
CUmemAllocationProp device_memory(
    int device, unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

/// Memory of the host's NUMA node `node`: host memory with a handle, so that it can be mapped by
/// GPUs and other processes exactly like device memory. Nodes are what
/// CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID tells of a device.
CUmemAllocationProp host_numa_memory(
    int node, unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

/// The unit in bytes in which memory with these properties is created, mapped and reserved.
/// MINIMUM is what is allowed, RECOMMENDED what performs best; both are powers of two.
/// Nothing else is judged here: a device that does not exist is refused by cuMemCreate. Throws
/// CudaError.
std::size_t granularity(
    const CUmemAllocationProp& properties,
    CUmemAllocationGranularity_flags flags = CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

/// The smallest multiple of `unit` that is at least `bytes`. `unit` is not 0. A result beyond
/// SIZE_MAX is cut to the largest multiple below it, which no driver grants: the allocation that
/// follows then fails with its own, better message.
std::size_t round_up(std::size_t bytes, std::size_t unit);

/// The size of the segments that `bytes` of shared memory are best made of, a multiple of `unit`:
/// 256 MiB, or a 64th of large allocations. Giving a peer access to memory made in one piece of 512 MiB
/// or more takes an H200 10 ms, in smaller pieces 2 ms, whatever their number.
std::size_t segment_size(std::size_t bytes, std::size_t unit);

/// The kind of place in words, for messages: `device`, `host NUMA node`.
const char* kind_name(const CUmemAllocationProp& properties);

}  // namespace symm
