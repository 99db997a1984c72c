#pragma once
/// \file
/// An allocation behind a bare pointer: what ncclMemAlloc and ncclMemFree do, call by call.
///
/// A library that hands out `void*` cannot hand out owners. What it needs to free the memory again
/// it asks the driver for, from the address alone: which handle is mapped here
/// (cuMemRetainAllocationHandle), how far does it reach (cuMemGetAddressRange), how was it made
/// (cuMemGetAllocationPropertiesFromHandle). An allocation may consist of several segments, each a
/// physical memory of its own, side by side in one reservation. A granule of addresses on either
/// side stays unmapped: the hole behind tells the walk where to stop, and both catch a kernel that
/// runs off the end.
///
///          reservation
///     |<------------------------------------------------->|
///     | hole | segment 0  | segment 1  | ...       | hole |
///            ^ the pointer
///
/// Source: NCCL's src/allocator.cc (ncclMemAlloc, ncclMemFree) and src/include/alloc.h
/// (ncclCuMemAlloc, ncclCuMemFree), which have one segment, however large, and no holes.

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace symm {

/// How mem_alloc allocates.
struct MemAllocOptions {
    int device = -1;  ///< Whose memory; -1 for the current context's device.
    std::size_t segment_bytes =
        0;  ///< Physical memory in pieces of this size; 0: see segment_size().
};

/// One piece of an allocation: a mapping and what is known of the memory behind it.
struct Segment {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    CUmemAllocationProp properties{};
};

/// Allocates at least `bytes` (not 0) that the device and all its peers may read and write, and
/// that can be exported: as a POSIX descriptor, and as a FABRIC handle where the system permits.
/// Needs a current context. With SYMM_CUMEM_ENABLE=0, or on a device without virtual memory
/// management, the memory comes from cuMemAlloc, as NCCL's does. Throws CudaError, and then leaves
/// nothing behind.
void* mem_alloc(std::size_t bytes, const MemAllocOptions& options = {});

/// Frees what mem_alloc returned; a null pointer is fine. Does not wait for kernels. Throws
/// CudaError where the driver refuses a call, std::invalid_argument for an address that is not the
/// start of an allocation. An error before the memory is unmapped changes nothing: the pointer can
/// be freed again.
void mem_free(void* pointer);

/// The segments of the allocation from `pointer` on, up to the first unmapped address, found by
/// asking the driver. Empty where nothing made by cuMemCreate is mapped. Throws CudaError, and
/// std::invalid_argument where `pointer` is not the start of a segment.
std::vector<Segment> segments_from(const void* pointer);

}  // namespace symm
