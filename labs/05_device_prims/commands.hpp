#pragma once
/// \file
/// The subcommands of 05_device_prims. Each function adds one, and returns what runs it when the
/// options are parsed: that returns the exit code.

#include <functional>

#include "common/cli/cli.hpp"

namespace symm {

/// `kernels`: walks the three ways to a kernel, on device 0 in this process, checks and times each.
/// Throws std::runtime_error for a wrong result, CudaError.
std::function<int()> add_kernels_command(CLI::App& app);

/// `ring`: collectives on a ring, checked, timed and compared with NCCL's rings. Throws UsageError,
/// and std::runtime_error for a wrong result.
std::function<int(const RankOptions&)> add_ring_command(CLI::App& app);

}  // namespace symm
