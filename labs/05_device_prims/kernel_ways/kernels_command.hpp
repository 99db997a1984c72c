#pragma once
/// \file
/// `05_device_prims kernels`: walks the three ways to a kernel, checks and times each.

#include <cstdint>

#include "common/cli/cli.hpp"

namespace symm {

struct KernelsOptions {
    std::uint32_t count = 100'003;
    std::uint32_t launches = 100;
};

/// Adds the subcommand. `options` must outlive the parsing.
CLI::App& add_kernels_command(CLI::App& app, KernelsOptions& options);

/// Runs it on device 0, in this process. Returns the exit code. Throws std::runtime_error for a
/// wrong result, CudaError.
int run_kernels_command(const KernelsOptions& options);

}  // namespace symm
