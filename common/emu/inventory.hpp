#pragma once
/// \file
/// Counts of all that exists in the emulated driver. Equal counts before and after: no leak.

#include <cstddef>
#include <map>
#include <string>

namespace symm::emu {

/// How many there are of each kind of thing, as in {"mappings", 2}. Kinds with a count of 0 are
/// left out.
using Inventory = std::map<std::string, std::size_t>;

/// The current counts. Safe from any thread.
Inventory inventory();

}  // namespace symm::emu
