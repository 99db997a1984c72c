#pragma once
/// \file
/// Algorithms from outside of the repository: SYMM_ALGORITHMS names a shared object (abi.h).

#include "common/bootstrap/bootstrap.hpp"

namespace symm {

/// Adds the algorithms of the file that SYMM_ALGORITHMS names to algorithm_rows(), once. Throws
/// UsageError for a file that has none, or differs from the first one.
void load_algorithms();
/// The same on all ranks, with rank 0's file. Throws UsageError on all ranks if one cannot load it,
/// or if their files differ.
void load_algorithms(Bootstrap& bootstrap);

}  // namespace symm
