#pragma once
/// \file
/// What every program here has in common: exit codes, `--driver`, how errors are told.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "common/cli/usage_error.hpp"

namespace symm {

/// Adds `--driver auto|native|emulated`, which is applied while the command line is parsed.
void add_driver_option(CLI::App& app);

/// Adds an option that takes a size as bytes.hpp reads it.
CLI::Option* add_bytes_option(CLI::App& app, const std::string& name, std::size_t& bytes,
                              const std::string& description);

/// Parses the command line, runs `body` and returns the exit code: what `body` returns, kExitUsage
/// with one line for bad usage, kExitFailed with the error for any other exception.
int run_main(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace symm
