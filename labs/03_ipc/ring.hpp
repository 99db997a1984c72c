#pragma once
/// \file
/// A ring of verified reads and writes: the proof that a symmetric range is what it says.

#include <cstddef>

#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {

/// Collective. Every rank fills its own memory with a pattern of its own; each reads its right
/// neighbour's with a kernel and compares every word; then writes a new pattern into its left
/// neighbour's, which the owner compares. Returns the words compared by this rank. Throws
/// std::runtime_error naming the ranks, the first wrong word, and what was seen: on all ranks.
std::size_t walk_ring(Rank& rank, const SymmetricRange& range);

}  // namespace symm
