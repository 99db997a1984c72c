#pragma once
/// \file
/// Every rank's memory to every rank: export, send, import, segment by segment.
///
/// Handles are sent in batches, so that many ranks with many segments have few file descriptors
/// open at once. Each batch is closed before the next is exported.

#include <cstdint>
#include <functional>
#include <vector>

#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Called for each segment of each rank, a rank's segments in order. The handle is given back after
/// the call: a mapping made in it keeps the memory.
using TakeSegment = std::function<void(std::size_t owner, const PhysicalMemory& segment)>;

/// Collective, among processes: exports `local`, the segments of this rank, as `kind`, and imports
/// those of all others. `sizes` has, for each rank, the sizes of its segments. `take` is called for
/// `local` as well. Throws on all ranks where it fails on one.
void exchange_memory(Rank& rank, CUmemAllocationHandleType kind,
                     const std::vector<PhysicalMemory>& local,
                     const std::vector<std::vector<std::uint64_t>>& sizes, const TakeSegment& take);

}  // namespace symm
