#pragma once
/// \file
/// `05_device_prims kernels`: walks the three ways to a kernel, checks and times each.

#include <functional>

#include "common/cli/cli.hpp"

namespace symm {

/// Adds the subcommand. Returns what runs it when the options are parsed, on device 0, in this
/// process: it returns the exit code, and throws std::runtime_error for a wrong result, CudaError.
std::function<int()> add_kernels_command(CLI::App& app);

}  // namespace symm
