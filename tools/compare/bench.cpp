// The benchmark against NCCL, with the options and columns of nccl-tests. Google Benchmark runs the
// sizes on rank 0; the other ranks follow it. docs/RESULTS.md has its results. TurnTimer
// (common/nccl/turn_timer.hpp) times calls, one by one or as a graph.

#include <benchmark/benchmark.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "common/cli/cli.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/turn_timer.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/file.hpp"
#include "labs/06_allreduce/communicator/memory_budget.hpp"
#include "tools/compare/bench/limit.hpp"
#include "tools/compare/bench/options.hpp"
#include "tools/compare/bench/table.hpp"

namespace {

using namespace symm;

constexpr const char* kWhatItDoes =
    R"(Compares our AllReduce, or another collective, with NCCL's, with the options and columns of
nccl-tests.

Our call, NCCL's default path and its symmetric windows take turns on the same buffers, in
the same process. A time is the median over the turns of one call's time on the slowest
rank. All results are checked after each turn; a wrong result ends the program with exit
status 1. dev: our two shots on NCCL's device API. ratio: the better of NCCL's other two
times, divided by ours.)";

constexpr const char* kExamples =
    R"(Try: 06_allreduce_bench -b 1K -e 1G -f 2 -G 1 --json two.json     (on GPUs)
     06_allreduce_bench -b 8 -e 64 -d bfloat16 -o max -g 3
     06_allreduce_bench --benchmark_filter='/1[KM]/'
NCCL is found at run time (SYMM_NCCL_LIB, LD_LIBRARY_PATH), and runs without NVLink's multicast
(NCCL_NVLS_ENABLE=0 is set). SYMM_ALGO, SYMM_BLOCKS, SYMM_THREADS and SYMM_MAX_BLOCKS override our
tuner. Without a GPU the benchmark runs on emulated ones: results are checked, but the times are
not performance figures.
Options that begin with --benchmark_ are Google Benchmark's (--benchmark_list_tests lists the
sizes). A rate is in 10^9 bytes per second; busbw is algbw x 2(n-1)/n for n ranks, half of that
for a ReduceScatter or an AllGather, and algbw for a Broadcast or a Reduce.)";

std::string head(const Rank& rank, const BenchOptions& options, const NcclComparison& comparison,
                 const SetUpTimes& ours, const std::optional<Limit>& limit) {
    std::string text = fmt::format(
        "# {}\n# {} ranks, {}\n# NCCL {}\n", describe_driver(), rank.size(), options.text(),
        comparison.why_no_nccl().empty() ? comparison.nccl_version() + ", without NVLink multicast"
                                         : "comparison skipped: " + comparison.why_no_nccl());
    const SetUpTimes& nccl = comparison.nccl_set_up();
    text += fmt::format(
        "# set-up in ms (NCCL): first communicator {:.1f} ({:.1f}), another {:.1f} ({:.1f}), 2 "
        "windows of {} {:.1f} ({:.1f})\n",
        ours.first, nccl.first, ours.another, nccl.another,
        format_bytes(options.comparison.most_bytes), ours.windows, nccl.windows);
    if (limit) {
        text += fmt::format(
            "# limit: {:.2f} us (a packet's latency) + bytes x {} (n-1)/n at {:.1f} GB/s (copy "
            "engines, each GPU to the next); one trip and a launch: {:.2f} us\n",
            limit->packet, row_of(options.comparison.arithmetic.collective).trips(), limit->rate,
            limit->smallest());
    }
    if (!is_emulated() && rank.size() > device_count()) {
        text +=
            "# Ranks share a GPU: no data crosses a link; the times are those of kernels and "
            "launches.\n";
    }
    if (!comparison.why_no_nccl_device().empty()) {
        text += fmt::format("# NCCL's device API skipped: {}\n", comparison.why_no_nccl_device());
    }
    if (is_emulated()) {
        text += "# Emulated: results are checked, but the times are not performance figures.\n";
    }
    return text + "#\n";
}

/// The command, with the variables that it reads: how to measure the same again.
std::string command_line(int argc, char** argv) {
    std::string variables;
    for (const env::Variable& variable : env::kVariables) {
        if (env::is_set(variable.name)) {
            variables += fmt::format("{}={} ", variable.name, std::getenv(variable.name));
        }
    }
    return fmt::format("{}06_allreduce_bench {}", variables, fmt::join(argv + 1, argv + argc, " "));
}

/// Adds the properties that all rows share to the JSON.
void add_context(const BenchOptions& options, const NcclComparison& comparison) {
    const auto& [type, op, collective, root] = options.comparison.arithmetic;
    benchmark::AddCustomContext("driver", describe_driver());
    benchmark::AddCustomContext("emulated", is_emulated() ? "yes" : "no");
    benchmark::AddCustomContext("options", options.text());
    benchmark::AddCustomContext("collective", std::string(row_of(collective).title));
    benchmark::AddCustomContext("datatype", std::string(name_of(type)));
    benchmark::AddCustomContext("op", std::string(name_of(op)));
    benchmark::AddCustomContext("nccl", comparison.nccl_version());
}

/// Writes the JSON. The head of the table comes before the first row, and not if Google Benchmark
/// only lists the sizes, which it does on stdout.
class Reporter : public benchmark::JSONReporter {
public:
    Reporter(const Rank& rank, std::string head, std::ostream& json)
        : rank_(rank), head_(std::move(head)), json_(json) {}

    bool ReportContext(const Context& context) override {
        rank_.headline("{}{}", head_, kTableHead);
        SetOutputStream(&json_);
        return JSONReporter::ReportContext(context);
    }

private:
    const Rank& rank_;
    std::string head_;
    std::ostream& json_;
};

void run(Rank& rank, const BenchOptions& options, std::ostream& json) {
    const ComparisonOptions& how = options.comparison;
    require_memory(rank, how.most_bytes, "-e");
    const auto limit = measure_limit(rank, how.graph_launches);
    std::optional<Communicator> communicator;
    const CommunicatorOptions with_limit{.limit = Deadline::standard_limit()};
    SetUpTimes ours;
    ours.first = time_together(rank, [&] { communicator.emplace(rank, with_limit); });
    communicator.reset();
    ours.another = time_together(rank, [&] { communicator.emplace(rank, with_limit); });
    NcclComparison comparison(rank, *communicator, how);
    ours.windows = comparison.our_windows();

    // Each rank measures the size that rank 0 sends; 0 ends the run.
    const auto measure = [&](std::size_t bytes) -> std::optional<BenchRow> {
        bytes = rank.bootstrap().allgather("next size", bytes)[0];
        if (bytes == 0) {
            return {};
        }
        const std::size_t count = bytes / options.unit();
        return BenchRow{bytes,
                        count,
                        rank.size(),
                        how.arithmetic,
                        limit,
                        comparison.run(count, false),
                        comparison.run(count, true)};
    };
    if (rank.rank() != 0) {
        while (measure(0)) {
        }
        return;
    }
    const auto& [type, op, collective, root] = how.arithmetic;
    for (const std::size_t bytes : options.sizes()) {
        const std::string name = fmt::format("{}/{}/{}/{}", name_of(collective), name_of(type),
                                             name_of(op), format_bytes(bytes));
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&, bytes](benchmark::State& state) {
                                         for (auto _ : state) {
                                             const BenchRow row = measure(bytes).value();
                                             state.SetIterationTime(row.out_of_place.ours * 1e-6);
                                             set_counters(state, row);
                                             rank.headline("{}", table_line(row));
                                         }
                                     })
            ->UseManualTime()
            ->Iterations(1)
            ->Unit(benchmark::kMicrosecond);
    }
    add_context(options, comparison);
    Reporter reporter(rank, head(rank, options, comparison, ours, limit), json);
    if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) {
        throw UsageError("--benchmark_filter matches no size: --benchmark_list_tests lists them");
    }
    measure(0);
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::AddCustomContext("command", command_line(argc, argv));
    // Google Benchmark would answer --help itself, so it gets only its own options.
    char** const middle = std::stable_partition(argv + 1, argv + argc, [](std::string_view word) {
        return !word.starts_with("--benchmark_");
    });
    std::vector<char*> theirs(middle, argv + argc);
    theirs.insert(theirs.begin(), argv[0]);
    CLI::App app(kWhatItDoes, "06_allreduce_bench");
    BenchOptions options;
    add_bench_options(app, options);
    app.footer(kExamples);
    return run_main(app, static_cast<int>(middle - argv), argv, [&] {
        int count = static_cast<int>(theirs.size());
        benchmark::Initialize(&count, theirs.data());
        if (count > 1) {
            throw UsageError("Google Benchmark has no option {}", theirs[1]);
        }
        options.complete();
        // Written as a whole after all measurements: a failed run leaves an old file unchanged.
        std::ostringstream json;
        const int status = run_ranks({options.ranks, RankMode::kThread, {}},
                                     [&](Rank& rank) { run(rank, options, json); });
        if (status == 0 && !options.json.empty() && !json.str().empty()) {
            write_file(options.json, json.str(), "--json " + options.json);
        }
        return status;
    });
}
