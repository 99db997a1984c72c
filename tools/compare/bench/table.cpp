#include "tools/compare/bench/table.hpp"

#include <fmt/core.h>

namespace symm {
namespace {

/// Bytes/time, in GB/s.
double rate(const BenchRow& row, double microseconds) {
    return static_cast<double>(row.bytes) / (microseconds * 1e3);
}

/// The bus bandwidth in GB/s, as nccl-tests defines it: bytes/time x 2(n-1)/n, half of that for a
/// ReduceScatter or an AllGather, and bytes/time for a collective with a root.
double bus_bandwidth(const BenchRow& row, double microseconds) {
    const CollectiveRow& collective = row_of(row.arithmetic.collective);
    const double factor =
        collective.has_root() ? 1.0 : collective.trips() * (row.ranks - 1.0) / row.ranks;
    return rate(row, microseconds) * factor;
}

/// The format of nccl-tests: three digits or more.
std::string cell(std::optional<double> value) {
    return value ? fmt::format("{:.{}f}", *value, *value < 100 ? 2 : *value < 10000 ? 1 : 0) : "-";
}

/// The counters of one place: `out_us`, `in_us` and so on.
void set_place(benchmark::UserCounters& counters, const std::string& place, const BenchRow& row,
               const Measured& measured) {
    const auto set = [&](const char* name, const std::optional<double>& value) {
        if (value) {
            counters[place + name] = *value;
        }
    };
    set("us", measured.ours);
    set("algbw", rate(row, measured.ours));
    set("busbw", bus_bandwidth(row, measured.ours));
    set("wrong", 0);  // else run() throws
    set("nccl_us", measured.nccl);
    set("nccl_symmetric_us", measured.nccl_symmetric);
    set("nccl_device_us", measured.nccl_device);
    set("ratio", measured.ratio());
    set("iterations", measured.iterations);
}

}  // namespace

std::string table_line(const BenchRow& row) {
    const Measured& out = row.out_of_place;
    std::string line = fmt::format("{:>10} {:>10} {:>8} {:>5}", row.bytes, row.count,
                                   name_of(row.arithmetic.type), name_of(row.arithmetic.op));
    for (const Measured* place : {&out, &row.in_place}) {
        line += fmt::format(" {:>6} {:>5} {:>5} {:>6}", cell(place->ours),
                            cell(rate(row, place->ours)), cell(bus_bandwidth(row, place->ours)),
                            0);  // a wrong result has ended the program
    }
    return fmt::format("{} {:>6} {:>6} {:>6} {:>5} {:>5} {:>8} {:>6}\n", line, cell(out.nccl),
                       cell(out.nccl_symmetric), cell(out.nccl_device), cell(out.ratio()),
                       cell(row.in_place.ratio()), name_of(out.plan.algorithm),
                       out.plan.shape.blocks);
}

void set_counters(benchmark::State& state, const BenchRow& row) {
    benchmark::UserCounters& counters = state.counters;
    counters["bytes"] = static_cast<double>(row.bytes);
    counters["count"] = static_cast<double>(row.count);
    counters["ranks"] = row.ranks;
    counters["blocks"] = row.out_of_place.plan.shape.blocks;
    if (row.limit) {
        counters["limit_us"] = row.limit->call(row.bytes, row.ranks, row.arithmetic.collective);
        counters["smallest_us"] = row.limit->smallest();
    }
    set_place(counters, "out_", row, row.out_of_place);
    set_place(counters, "in_", row, row.in_place);
    state.SetLabel(std::string(name_of(row.out_of_place.plan.algorithm)));
}

}  // namespace symm
