#pragma once
/// \file
/// The table of the benchmark: nccl-tests' columns, and NCCL's times beside them.

#include <benchmark/benchmark.h>

#include <optional>
#include <string>

#include "tools/compare/bench/limit.hpp"
#include "tools/compare/nccl_comparison.hpp"

namespace symm {

/// The results of one size.
struct BenchRow {
    std::size_t bytes;
    std::size_t count;
    int ranks;
    Arithmetic arithmetic;
    std::optional<Limit> limit;
    Measured out_of_place;
    Measured in_place;
};

inline constexpr const char* kTableHead =
    "#                                         out-of-place              in-place        "
    "          NCCL, out-of-place in-pl\n"
    "#     size      count     type redop   time algbw busbw #wrong   time algbw busbw #wrong"
    "   NCCL    sym    dev ratio ratio     algo blocks\n"
    "#        B   elements                    us  GB/s  GB/s            us  GB/s  GB/s       "
    "     us     us     us\n";

/// The row's line; `-` for values that were not measured.
std::string table_line(const BenchRow& row);

/// Gives the row's values to Google Benchmark as counters, so that they are in its JSON. Values
/// that were not measured have no counter. The label is the algorithm.
void set_counters(benchmark::State& state, const BenchRow& row);

}  // namespace symm
