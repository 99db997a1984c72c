#pragma once
/// \file
/// `06_allreduce --ladder`: runs the ladder, checks every element, and prints a table of times.

#include <string>

#include "common/sys/bytes.hpp"

namespace symm {

inline constexpr int kLadderRungs = 9;
/// The most bytes of a call: each rank has slots for whole inputs of all ranks.
inline constexpr std::size_t kMostLadderBytes = std::size_t{4} << 20;

/// Makes calls of each size, `factor` from one to the next, with ranks that are threads: of all
/// rungs if `rung` is 0, otherwise of this one. On
/// emulated GPUs, whose times mean nothing, it only checks them. Also writes the times to the file
/// `json`, unless that is empty: a measurement of docs/results.py. Returns the exit code.
int run_ladder(int rung, int ranks, const ByteRange& sizes, std::size_t factor,
               const std::string& json);

}  // namespace symm
