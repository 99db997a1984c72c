#pragma once
/// \file
/// Addresses of code as lines of source.

#include <string>
#include <vector>

namespace symm::explore {

/// For each access, given as its address and those of its callers, innermost first: their lines,
/// `labs/05_device_prims/barrier.hpp:98`, without those of the layers below kernels (accesses,
/// waits, the standard library). Empty where llvm-symbolizer is missing.
std::vector<std::vector<std::string>> places_of(const std::vector<std::vector<void*>>& accesses);

}  // namespace symm::explore
