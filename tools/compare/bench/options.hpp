#pragma once
/// \file
/// The options of the benchmark: those of NCCL's own benchmark, nccl-tests, with the same names and
/// the same meaning.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/compare/nccl_comparison.hpp"

namespace symm {

/// The options as given; 0: not given.
struct BenchOptions {
    int ranks = 0;
    std::size_t min_bytes = 0;
    std::size_t step_factor = 0;  ///< From one size to the next.
    std::string json;
    ComparisonOptions comparison{.most_bytes = 0, .iterations = 0, .warm_ups = 5, .rounds = 0};

    /// Fills in options that were not given; their defaults depend on the driver. Throws UsageError
    /// for values that cannot be combined.
    void complete();
    /// Bytes of an element of each part: sizes are multiples of this.
    std::size_t unit() const;
    /// The sizes in bytes, of the larger buffer.
    std::vector<std::size_t> sizes() const;
    /// All options in one line.
    std::string text() const;
};

void add_bench_options(CLI::App& app, BenchOptions& options);

}  // namespace symm
