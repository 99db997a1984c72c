#include "labs/02_access/bandwidth.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cli/table.hpp"
#include "common/cuda/driver.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/transfer.hpp"

namespace symm {
namespace {

/// Runs those of the transfers that are possible, all at once, by each method, and keeps the rate
/// of the slowest.
void measure_rates(TransferBench& bench, const std::vector<Transfer>& transfers, int iterations,
                   LinkSpeed& speed) {
    for (std::size_t method = 0; method < std::size(kMethods); ++method) {
        std::vector<Transfer> possible;
        std::copy_if(transfers.begin(), transfers.end(), std::back_inserter(possible),
                     [&](const Transfer& t) { return bench.possible(kMethods[method], t); });
        if (!possible.empty()) {
            const std::vector<double> rates = bench.run(kMethods[method], possible, iterations);
            speed.gb_per_s[method] = *std::min_element(rates.begin(), rates.end());
        }
    }
}

}  // namespace

std::vector<LinkSpeed> measure_links(std::span<const Gpu> gpus, const PeerMatrix& matrix,
                                     std::size_t bytes, int iterations) {
    // 2 MiB: more lines than a first-level cache holds, and one page of the GPU.
    constexpr std::size_t kChain = std::size_t{2} << 20;
    const std::uint32_t hops = is_emulated() ? 256 : 16384;
    TransferBench bench(gpus, matrix, bytes);
    std::vector<LinkSpeed> speeds;
    for (const Gpu& from : gpus) {
        for (const Gpu& to : gpus) {
            LinkSpeed& speed = speeds.emplace_back();
            speed.from = std::to_string(from.ordinal());
            speed.to = std::to_string(to.ordinal());
            measure_rates(bench, {{from.ordinal(), to.ordinal()}}, iterations, speed);
            if (matrix.usable({to.ordinal(), from.ordinal()})) {
                speed.latency_ns = load_latency_ns(to, from, kChain, hops);
            }
        }
    }
    for (int step = 1; step < bench.devices(); ++step) {
        std::vector<Transfer> transfers;
        for (int source = 0; source < bench.devices(); ++source) {
            transfers.push_back({source, (source + step) % bench.devices()});
        }
        measure_rates(bench, transfers, iterations,
                      speeds.emplace_back(LinkSpeed{"each", fmt::format("i + {}", step), {}, {}}));
    }
    return speeds;
}

std::string table_of(std::span<const LinkSpeed> speeds) {
    Table table({"from", "to", "loads GB/s", "stores GB/s", "copy engine GB/s", "latency ns"});
    for (const LinkSpeed& speed : speeds) {
        std::vector<std::string> cells{speed.from, speed.to};
        for (const auto& rate : speed.gb_per_s) {
            cells.push_back(rate ? fmt::format("{:.1f}", *rate) : "-");
        }
        cells.push_back(speed.latency_ns ? fmt::format("{:.0f}", *speed.latency_ns) : "-");
        table.add(cells);
    }
    return table.text();
}

}  // namespace symm
