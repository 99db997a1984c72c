#pragma once
/// \file
/// Whether the buffers of an AllReduce fit into the devices' memory, asked before any is made.

#include <cstddef>
#include <string_view>

#include "common/ranks/rank.hpp"

namespace symm {

/// Throws UsageError where a rank's part of its device's memory does not hold an input and an
/// output of `bytes` each beside the communicator's own memory. The text says how much the user may
/// give as `option`, the one that `bytes` come from.
void require_room(const Rank& rank, std::size_t bytes, std::string_view option);

}  // namespace symm
