#pragma once
/// \file
/// A ring of reads and writes, each compared word by word: the check that a symmetric range works.

#include <cstddef>

#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {

/// Collective. Every rank fills its own memory with a pattern of its own, and reads and compares its
/// right neighbour's. Then it writes a new pattern into its left neighbour's memory, which the
/// owner compares. Returns the number of words that this rank compared. Throws std::runtime_error
/// on all ranks, naming the ranks and the first wrong word.
std::size_t walk_ring(Rank& rank, const SymmetricRange& range);

}  // namespace symm
