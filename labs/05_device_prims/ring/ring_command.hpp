#pragma once
/// \file
/// `05_device_prims ring`: collectives on a ring, checked, timed and compared with NCCL's rings.

#include <functional>

#include "common/cli/cli.hpp"

namespace symm {

/// Adds the subcommand. Returns what runs it when the options are parsed: it returns the exit code,
/// and throws UsageError, and std::runtime_error for a wrong result.
std::function<int(const RankOptions&)> add_ring_command(CLI::App& app);

}  // namespace symm
