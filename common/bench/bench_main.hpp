#pragma once
/// \file
/// What the benchmarks of all labs have in common: exit codes, and what is said of emulated times.
/// Google Benchmark's own main() ends with 1 for bad usage, and lets exceptions through.

#include <benchmark/benchmark.h>

#include <functional>

namespace symm {

/// Reads Google Benchmark's flags and calls `run`, which registers what is only known now, and runs
/// all. Returns the exit code: 0, 2 for flags that nobody knows, 1 for an exception, which is told.
int bench_main(
    int argc, char** argv,
    const std::function<void()>& run = [] { benchmark::RunSpecifiedBenchmarks(); });

/// Says on stderr which driver answers, and that an emulated one's times mean nothing.
void tell_driver();

}  // namespace symm
