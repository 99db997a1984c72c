#pragma once
/// \file
/// The table of the benchmark: nccl-tests' columns, and NCCL's times beside them.

#include <benchmark/benchmark.h>

#include <optional>
#include <ostream>
#include <string>

#include "labs/06_allreduce/comparison/bench/limit.hpp"
#include "labs/06_allreduce/comparison/nccl_comparison.hpp"

namespace symm {

/// The results of one size.
struct BenchRow {
    std::size_t bytes;
    std::size_t count;
    int ranks;
    Collective collective;
    bool checked;
    std::optional<Limit> limit;
    Measured out_of_place;
    Measured in_place;
};

/// Gives the row's values to Google Benchmark as counters, so that they are in its JSON. Values
/// that were not measured have no counter. The label is the algorithm.
void set_counters(benchmark::State& state, const BenchRow& row);

/// Prints rows from their counters, and writes them as JSON if there is a stream for it.
class TableReporter : public benchmark::BenchmarkReporter {
public:
    /// Prints through `rank`, which is rank 0: first `head`. `json` may be null.
    TableReporter(const Rank& rank, const Arithmetic& arithmetic, std::string head,
                  std::ostream* json);

    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override;

private:
    const Rank& rank_;
    Arithmetic arithmetic_;
    std::string head_;
    std::optional<benchmark::JSONReporter> json_;
};

}  // namespace symm
