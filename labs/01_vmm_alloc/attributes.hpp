#pragma once
/// \file
/// What a device says about its memory, as a table.

#include <string>

namespace symm {

/// The attributes that decide which allocations a device takes part in: name, value and what it
/// means, a line each. Throws CudaError.
std::string attribute_table(int device);

}  // namespace symm
