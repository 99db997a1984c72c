#pragma once
/// \file
/// Sends every rank's memory to every rank: export, send and import, segment by segment.
///
/// Handles are sent in batches, so that many ranks with many segments have few file descriptors
/// open at once. Each batch is closed before the next is exported.

#include <cstdint>
#include <functional>
#include <vector>

#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Called for each segment of each rank, a rank's segments in order. The handle of an imported
/// segment is released after the call: a mapping made during the call keeps the memory.
using TakeSegment = std::function<void(std::size_t owner, const PhysicalMemory& segment)>;

/// Collective, for ranks that are processes: exports `local`, the segments of this rank, as `kind`,
/// and imports those of all others. `sizes` has, for each rank, the sizes of its segments. `take`
/// is called for `local` as well. If it fails on one rank, it throws on all ranks.
void exchange_memory(Rank& rank, CUmemAllocationHandleType kind,
                     const std::vector<PhysicalMemory>& local,
                     const std::vector<std::vector<std::uint64_t>>& sizes, const TakeSegment& take);

}  // namespace symm
