#pragma once
/// \file
/// How long it takes until ranks share memory, ours beside NCCL's.

#include <cstddef>

#include "common/ranks/rank.hpp"

namespace symm {

/// Collective: times, over `rounds` rounds, meeting anew and building a symmetric range of `bytes`
/// each; then NCCL's ncclCommInitRank, ncclMemAlloc and ncclCommWindowRegister, where its library
/// is there and there is a GPU for each rank. Rank 0 prints the table; times are the slowest
/// rank's.
void time_set_up(Rank& rank, std::size_t bytes, int rounds);

}  // namespace symm
