#pragma once
/// \file
/// Shared by the benchmarks of all labs: exit codes, and a note about emulated times.
/// Google Benchmark's own main() ends with 1 for bad usage, and lets exceptions through.

#include <benchmark/benchmark.h>

#include <functional>

namespace symm {

/// Reads Google Benchmark's flags, calls `add`, which may register more benchmarks, and runs all.
/// Returns the exit code: 0; 2 for bad usage, such as an unknown flag or a filter that matches
/// nothing; 1 for any other exception, whose text goes to stderr, and if stdout lost something.
int bench_main(
    int argc, char** argv, const std::function<void()>& add = [] {});

/// Prints on stderr which driver is in use, and that an emulated one's times mean nothing.
void tell_driver();

}  // namespace symm
