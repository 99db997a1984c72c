#pragma once
/// \file
/// An allocation for which the program keeps only the pointer, made and freed by the driver calls
/// that ncclMemAlloc and ncclMemFree make.
///
/// mem_free gets no owners: it asks the driver for everything that it needs (MEM_ALLOC.md). An
/// allocation may consist of several segments, each with physical memory of its own, side by side
/// in one reservation. A granule of addresses at either end stays unmapped: the one at the end
/// tells mem_free where to stop, and a kernel that runs beyond either end faults.
///
///          reservation
///     |<------------------------------------------------->|
///     | hole | segment 0  | segment 1  | ...       | hole |
///            ^ the pointer
///
/// Source: NCCL's src/allocator.cc (ncclMemAlloc, ncclMemFree) and src/include/alloc.h
/// (ncclCuMemAlloc, ncclCuMemFree), which make one segment, however large, and no holes.

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace symm {

/// One piece of an allocation: a mapping, and how its memory was made.
struct Segment {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    CUmemAllocationProp properties{};
};

/// Allocates at least `bytes` (not 0) of the current context's device, in segments of at most
/// `segment_bytes` (0: segment_size()). The device and all its peers may read and write the
/// memory. Its handles can be exported as POSIX descriptors, and as FABRIC handles if the system
/// permits. With SYMM_CUMEM_ENABLE=0, or on a device without virtual memory management, the memory
/// comes from cuMemAlloc, as NCCL's does. Throws CudaError, and then leaves nothing behind.
void* mem_alloc(std::size_t bytes, std::size_t segment_bytes = 0);

/// Frees what mem_alloc returned; nothing for a null pointer. Does not wait for kernels. Throws
/// CudaError if the driver refuses a call, std::invalid_argument for an address that is not the
/// start of an allocation. If the error comes before the memory is unmapped, mem_free can be
/// called again. Needs a current context: any.
void mem_free(void* pointer);

/// The segments from `pointer` on, up to the first unmapped address, as the driver reports them.
/// Empty if nothing made by cuMemCreate is mapped. Throws CudaError, and std::invalid_argument
/// if `pointer` is not the start of a segment. Needs a current context: any.
std::vector<Segment> segments_from(const void* pointer);

}  // namespace symm
