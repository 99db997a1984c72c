#include "labs/02_access/bandwidth.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "common/cuda/driver.hpp"
#include "labs/02_access/latency.hpp"

namespace symm {
namespace {

constexpr Method kMethods[] = {Method::kLoads, Method::kStores, Method::kCopyEngine};

Matrix rates(const TransferBench& bench, Method method, const std::string& who) {
    return Matrix(fmt::format("{}, {}", name_of(method), who), "GB/s", "from", "to",
                  bench.devices());
}

bool possible(const TransferBench& bench, const PeerTransfer& transfer) {
    return transfer.source != transfer.destination && transfer.bytes != 0 &&
           bench.matrix().usable(transfer.access());
}

PeerTransfer whole(const TransferBench& bench, Method method, int source, int destination) {
    return {source, destination, method, 0, 0, bench.bytes()};
}

/// Runs the transfers that are possible, all at once, and notes each one's rate.
void run_at_once(TransferBench& bench, std::vector<PeerTransfer> transfers, int iterations,
                 Matrix& matrix) {
    std::erase_if(transfers, [&](const PeerTransfer& t) { return !possible(bench, t); });
    if (transfers.empty()) {
        return;
    }
    const std::vector<double> results = bench.run(transfers, iterations);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        matrix.at(transfers[i].source, transfers[i].destination) = results[i];
    }
}

}  // namespace

Matrix measure_pairs(TransferBench& bench, Method method, bool both_directions, int iterations) {
    Matrix matrix =
        rates(bench, method, both_directions ? "pairs, both directions" : "pairs, one direction");
    for (int source = 0; source < bench.devices(); ++source) {
        for (int destination = 0; destination < bench.devices(); ++destination) {
            const PeerTransfer there = whole(bench, method, source, destination);
            const PeerTransfer back = whole(bench, method, destination, source);
            if (!both_directions) {
                run_at_once(bench, {there}, iterations, matrix);
            } else if (source < destination && possible(bench, there) && possible(bench, back)) {
                run_at_once(bench, {there, back}, iterations, matrix);
            }
        }
    }
    return matrix;
}

Matrix measure_neighbours(TransferBench& bench, Method method, int iterations) {
    Matrix matrix = rates(bench, method, "all at once to their neighbours");
    std::vector<PeerTransfer> transfers;
    for (int source = 0; source < bench.devices(); ++source) {
        transfers.push_back(whole(bench, method, source, (source + 1) % bench.devices()));
    }
    run_at_once(bench, transfers, iterations, matrix);
    return matrix;
}

Matrix measure_all_to_all(TransferBench& bench, Method method, int iterations) {
    Matrix matrix = rates(bench, method, "all to all, in rounds");
    matrix.row_sums_count();
    // A slice of its own for every pair: by destination in the source's buffer, by source in the
    // destination's. In each round every device has one partner, and no two the same: all together at
    // one would share its link.
    const auto devices = static_cast<std::size_t>(bench.devices());
    const std::size_t slice = bench.bytes() / devices / 16 * 16;
    std::vector<PeerTransfer> transfers;
    for (int step = 1; step < bench.devices(); ++step) {
        for (int source = 0; source < bench.devices(); ++source) {
            const int destination = (source + step) % bench.devices();
            transfers.push_back({source, destination, method,
                                 static_cast<std::size_t>(destination) * slice,
                                 static_cast<std::size_t>(source) * slice, slice});
        }
    }
    run_at_once(bench, transfers, iterations, matrix);
    return matrix;
}

Matrix measure_latency(std::span<const Gpu> gpus, const PeerMatrix& matrix, std::size_t bytes,
                       std::uint32_t hops) {
    Matrix result("load latency", "ns", "device", "memory of", static_cast<int>(gpus.size()));
    for (const Gpu& accessor : gpus) {
        for (const Gpu& owner : gpus) {
            if (matrix.usable({accessor.ordinal(), owner.ordinal()})) {
                result.at(accessor.ordinal(), owner.ordinal()) =
                    load_latency_ns(accessor, owner, bytes, hops);
            }
        }
    }
    return result;
}

PeerMeasurement measure_all(std::span<const Gpu> gpus, const PeerMatrix& matrix,
                            const BandwidthOptions& options,
                            const std::function<void(const std::string&)>& tell) {
    PeerMeasurement measurement;
    measurement.driver = describe_driver();
    measurement.emulated = is_emulated();
    measurement.bytes = options.bytes;
    if (measurement.bytes == 0) {
        measurement.bytes = measurement.emulated ? std::size_t{64} << 10 : std::size_t{512} << 20;
    }
    measurement.iterations = options.iterations;
    if (measurement.iterations == 0) {
        measurement.iterations = measurement.emulated ? 2 : 16;
    }

    TransferBench bench(gpus, matrix, measurement.bytes);
    const int iterations = measurement.iterations;
    const auto add = [&](const std::string& name, const std::function<Matrix()>& measure) {
        tell(name);
        measurement.matrices.push_back(measure());
    };
    for (const Method method : kMethods) {
        const std::string by = name_of(method);
        add(by + ", pairs, one direction",
            [&] { return measure_pairs(bench, method, false, iterations); });
        add(by + ", pairs, both directions",
            [&] { return measure_pairs(bench, method, true, iterations); });
        add(by + ", all at once to their neighbours",
            [&] { return measure_neighbours(bench, method, iterations); });
        add(by + ", all to all, in rounds",
            [&] { return measure_all_to_all(bench, method, iterations); });
    }
    // 2 MiB: more lines than any first-level cache holds, and one page of the GPU.
    add("load latency", [&] {
        return measure_latency(gpus, matrix, std::size_t{2} << 20,
                               measurement.emulated ? 256u : 16384u);
    });
    return measurement;
}

}  // namespace symm
