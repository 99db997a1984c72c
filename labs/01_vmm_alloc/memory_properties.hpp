#pragma once
/// \file
/// The properties of physical memory, and its granularity.
///
/// `cuMemCreate` takes a size and a CUmemAllocationProp, which specifies where the memory lies
/// (a device, or a NUMA node of the host) and how its handle may be sent to other processes. Sizes
/// and addresses are multiples of the granularity, 2 MiB on every GPU so far.
///
/// Source: CUDA Driver API, "Virtual Memory Management"; NCCL's src/include/alloc.h fills the same
/// structure in ncclCuMemAlloc.

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Memory of one device, pinned, whose handle may be exported as any of `handle_types` (a bit set
/// of CUmemAllocationHandleType, 0 for none). A handle type that is not requested here cannot be
/// exported later.
CUmemAllocationProp device_memory(
    int device, unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

/// Memory of the host's NUMA node `node`: host memory with a handle (a POSIX descriptor), so that
/// GPUs and other processes can map it like device memory. CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID is
/// the node nearest to a device.
CUmemAllocationProp host_numa_memory(int node);

/// The unit in bytes in which memory with these properties is created, mapped and reserved. MINIMUM
/// is the smallest one allowed, RECOMMENDED performs best; both are powers of two. The driver may
/// answer even for a device that does not exist; cuMemCreate refuses such a device. Throws
/// CudaError.
std::size_t granularity(
    const CUmemAllocationProp& properties,
    CUmemAllocationGranularity_flags flags = CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

/// The smallest multiple of `unit` (not 0) that is at least `bytes`. If that is beyond SIZE_MAX,
/// the largest multiple below SIZE_MAX: the driver then refuses the allocation and says why.
std::size_t round_up(std::size_t bytes, std::size_t unit);

/// The size of the pieces in which `bytes` of shared memory should be created, a multiple of
/// `unit`: 256 MiB, or a 64th of `bytes` if that is more. On an H200, giving a peer access takes
/// 10 ms for one piece of 512 MiB or more, and 2 ms for any number of smaller pieces.
std::size_t segment_size(std::size_t bytes, std::size_t unit);

/// Where the memory lies, for messages: `device`, `host NUMA node`.
const char* kind_name(const CUmemAllocationProp& properties);

}  // namespace symm
