#pragma once
/// \file
/// Whether the buffers of an AllReduce fit into the devices' memory, checked before allocation.

#include <cstddef>
#include <string_view>

#include "common/ranks/rank.hpp"

namespace symm {

/// Throws UsageError if a rank's part of its device's memory cannot hold the communicator's memory
/// plus an input and an output of `bytes` each. The text names the most that the user may pass as
/// `option`, the one that `bytes` comes from.
void require_memory(const Rank& rank, std::size_t bytes, std::string_view option);

}  // namespace symm
