#pragma once
/// \file
/// The options of the benchmark: those of NCCL's own benchmark, nccl-tests, with the same names and
/// the same meaning.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "labs/06_allreduce/comparison/nccl_comparison.hpp"

namespace symm {

/// The options as given. 0 or empty, if that is the default: not given.
struct BenchOptions {
    int threads = 0;
    int gpus = 0;  ///< GPUs per thread.
    std::size_t min_bytes = 0;
    std::size_t max_bytes = 0;
    std::size_t step_bytes = 0;  ///< From one size to the next, instead of the factor.
    std::size_t step_factor = 0;
    std::string collective = "allreduce";
    std::string type = "float";
    std::string op = "sum";
    int check = 1;
    int rounds = 0;
    bool no_nccl = false;
    std::string json;
    ComparisonOptions comparison;

    /// Fills in options that were not given; their defaults depend on the driver. Throws UsageError
    /// for values that cannot be combined.
    void complete();
    int ranks() const { return threads * gpus; }
    /// Bytes of an element of each part: sizes are multiples of this.
    std::size_t unit() const;
    /// The sizes in bytes, of the larger buffer.
    std::vector<std::size_t> sizes() const;
    /// All options in one line.
    std::string text() const;
};

void add_bench_options(CLI::App& app, BenchOptions& options);

}  // namespace symm
