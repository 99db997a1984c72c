#pragma once
/// \file
/// Addresses of code as lines of source.

#include <map>
#include <string>
#include <vector>

namespace symm::explore {

/// The lines of each address, innermost first: `labs/05_device_prims/barrier.hpp:98`.
using Places = std::map<void*, std::vector<std::string>>;

/// Adds the lines of all addresses, without those of the layers below kernels (accesses, waits, the
/// standard library). None where llvm-symbolizer is missing.
void look_up(Places& places);

}  // namespace symm::explore
