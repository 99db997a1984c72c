#include "labs/06_allreduce/comparison/bench/table.hpp"

#include <fmt/core.h>

namespace symm {
namespace {

/// The bus bandwidth in GB/s, as nccl-tests defines it: bytes/time x 2(n-1)/n, and half of that for
/// a ReduceScatter or an AllGather.
double bus_bandwidth(const BenchRow& row, double microseconds) {
    return static_cast<double>(row.bytes) / (microseconds * 1e3) * trips_of(row.collective) *
           (row.ranks - 1) / row.ranks;
}

constexpr const char* kHead =
    "#                                         out-of-place              in-place        "
    "          NCCL, out-of-place in-pl\n"
    "#     size      count     type redop   time algbw busbw #wrong   time algbw busbw #wrong"
    "   NCCL    sym    dev ratio ratio     algo blocks\n"
    "#        B   elements                    us  GB/s  GB/s            us  GB/s  GB/s       "
    "     us     us     us\n";

using Counters = benchmark::UserCounters;

/// The counters of one place: `out_us`, `in_us` and so on.
void set_place(Counters& counters, const std::string& place, const BenchRow& row,
               const Measured& measured) {
    const auto set = [&](const char* name, const std::optional<double>& value) {
        if (value) {
            counters[place + name] = *value;
        }
    };
    set("us", measured.ours);
    set("algbw", static_cast<double>(row.bytes) / (measured.ours * 1e3));
    set("busbw", bus_bandwidth(row, measured.ours));
    set("wrong", row.checked ? std::optional(0.0) : std::nullopt);  // else run() throws
    set("nccl_us", measured.nccl);
    set("nccl_symmetric_us", measured.nccl_symmetric);
    set("nccl_device_us", measured.nccl_device);
    set("ratio", measured.ratio());
    set("iterations", measured.iterations);
}

/// The format of nccl-tests for times: four digits or more.
std::string time_text(double us) {
    return fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 10000 ? 1 : 0);
}
std::string rate_text(double rate) {
    return fmt::format("{:.{}f}", rate, rate < 100 ? 2 : 1);
}
std::string ratio_text(double ratio) {
    return fmt::format("{:.2f}", ratio);
}
std::string whole_text(double value) {
    return fmt::format("{:.0f}", value);
}

}  // namespace

void set_counters(benchmark::State& state, const BenchRow& row) {
    Counters& counters = state.counters;
    counters["bytes"] = static_cast<double>(row.bytes);
    counters["count"] = static_cast<double>(row.count);
    counters["ranks"] = row.ranks;
    counters["blocks"] = row.out_of_place.plan.shape.blocks;
    if (row.limit) {
        counters["limit_us"] = row.limit->call(row.bytes, row.ranks, row.collective);
    }
    set_place(counters, "out_", row, row.out_of_place);
    set_place(counters, "in_", row, row.in_place);
    state.SetLabel(std::string(name_of(row.out_of_place.plan.algorithm)));
}

TableReporter::TableReporter(const Rank& rank, const Arithmetic& arithmetic, std::string head,
                             std::ostream* json)
    : rank_(rank), arithmetic_(arithmetic), head_(std::move(head)) {
    if (json != nullptr) {
        json_.emplace().SetOutputStream(json);
    }
}

bool TableReporter::ReportContext(const Context& context) {
    rank_.headline("{}{}", head_, kHead);
    return !json_ || json_->ReportContext(context);
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        if (run.run_type != Run::RT_Iteration) {
            continue;  // Google Benchmark's means of repetitions: in the JSON only
        }
        const auto cell = [&](const std::string& name, std::string (*text)(double)) {
            const auto found = run.counters.find(name);
            return found == run.counters.end() ? "-" : text(found->second.value);
        };
        std::string line = fmt::format("{:>10} {:>10} {:>8} {:>5}", cell("bytes", whole_text),
                                       cell("count", whole_text), name_of(arithmetic_.type),
                                       name_of(arithmetic_.op));
        for (const std::string place : {"out_", "in_"}) {
            line += fmt::format(" {:>6} {:>5} {:>5} {:>6}", cell(place + "us", time_text),
                                cell(place + "algbw", rate_text), cell(place + "busbw", rate_text),
                                cell(place + "wrong", whole_text));
        }
        rank_.headline("{} {:>6} {:>6} {:>6} {:>5} {:>5} {:>8} {:>6}\n", line,
                       cell("out_nccl_us", time_text), cell("out_nccl_symmetric_us", time_text),
                       cell("out_nccl_device_us", time_text), cell("out_ratio", ratio_text),
                       cell("in_ratio", ratio_text), run.report_label, cell("blocks", whole_text));
    }
    if (json_) {
        json_->ReportRuns(runs);
    }
}

void TableReporter::Finalize() {
    if (json_) {
        json_->Finalize();
    }
}

}  // namespace symm
