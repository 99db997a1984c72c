#pragma once
/// \file
/// How long it takes until ranks share memory, beside NCCL.

#include <cstddef>

#include "common/ranks/rank.hpp"

namespace symm {

/// Collective: times, in each of `rounds` rounds, a new meeting of the ranks and a symmetric range of
/// `bytes` per rank; then NCCL's ncclCommInitRank, ncclMemAlloc and ncclCommWindowRegister, where its
/// library is found and each rank has a GPU. Rank 0 prints the table, with the slowest rank's times.
void time_set_up(Rank& rank, std::size_t bytes, int rounds);

}  // namespace symm
