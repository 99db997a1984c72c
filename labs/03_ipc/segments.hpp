#pragma once
/// \file
/// The physical memory that a rank brings: new segments, or those behind memory that it has already.
///
/// Memory is created in segments of at most segment_size() bytes (lab 01): giving a peer access to
/// one large piece takes much longer. Each segment is one cuMemCreate with a handle of its own, so
/// sharing a buffer means sharing each of its segments.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// New segments, in order, of `bytes` in all: a multiple of the granularity. Throws CudaError.
std::vector<PhysicalMemory> create_segments(const CUmemAllocationProp& properties,
                                            std::size_t bytes);

/// The segments mapped at [pointer, pointer + bytes), in order; the last may reach further. Throws
/// CudaError where nothing made by cuMemCreate is mapped, std::invalid_argument where `pointer` is
/// not the start of a segment.
std::vector<PhysicalMemory> find_segments(CUdeviceptr pointer, std::size_t bytes);

}  // namespace symm
