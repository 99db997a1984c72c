#pragma once
/// \file
/// `--ranks` and `--mode`, the same for all programs that have ranks.

#include "common/cli/cli.hpp"
#include "common/ranks/ranks.hpp"

namespace symm {

/// Adds `--ranks`, from 1 to `most`, and `--mode process|thread`.
void add_rank_options(CLI::App& app, RankOptions& options, int most = kMaxRanks);

}  // namespace symm
