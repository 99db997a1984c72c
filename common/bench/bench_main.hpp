#pragma once
/// \file
/// What the benchmarks of all labs have in common: exit codes, and a note about emulated times.
/// Google Benchmark's own main() ends with 1 for bad usage, and lets exceptions through.

#include <benchmark/benchmark.h>

#include <functional>

namespace symm {

/// Reads Google Benchmark's flags and calls `run`, which may register more benchmarks and runs all.
/// Returns the exit code: 0; 2 for bad usage, such as an unknown flag; 1 for any other exception,
/// whose text goes to stderr.
int bench_main(
    int argc, char** argv,
    const std::function<void()>& run = [] { benchmark::RunSpecifiedBenchmarks(); });

/// Says on stderr which driver answers, and that an emulated one's times mean nothing.
void tell_driver();

}  // namespace symm
