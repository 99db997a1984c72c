// What giving access costs, and how fast a pair of devices is, in Google Benchmark's words.
//
// The whole matrices are `02_access --bandwidth`; here are the numbers to watch between two
// changes.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "common/bench/bench_main.hpp"
#include "common/cli/bytes.hpp"
#include "common/cuda/driver.hpp"
#include "labs/02_access/access.hpp"
#include "labs/02_access/latency.hpp"
#include "labs/02_access/peer_check.hpp"
#include "labs/02_access/shared_buffer.hpp"
#include "labs/02_access/transfer.hpp"

namespace {

using namespace symm;

/// Gives all users access to a buffer, in one call or one by one; taking it away is not timed.
void give_access(benchmark::State& state, std::size_t bytes, bool at_once) {
    const std::vector<int> users = devices_that_reach(0);
    const SharedBuffer buffer(0, bytes, {});
    for (auto _ : state) {
        forbid(buffer.base(), buffer.size(), users);
        const auto start = std::chrono::steady_clock::now();
        if (at_once) {
            allow(buffer.base(), buffer.size(), users);
        } else {
            allow_one_by_one(buffer.base(), buffer.size(), users);
        }
        state.SetIterationTime(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    state.counters["devices"] = static_cast<double>(users.size());
}

/// One pair, each run checked; the time is the devices' own.
void transfer(benchmark::State& state, TransferBench& bench, const Pair& pair, Method method,
              bool both) {
    const PeerTransfer there{pair.accessor, pair.owner, method, 0, 0, bench.bytes()};
    const PeerTransfer back{pair.owner, pair.accessor, method, 0, 0, bench.bytes()};
    constexpr int kRepeats = 4;
    double rate = 0;
    for (auto _ : state) {
        rate = both ? bench.run(std::array{there, back}, kRepeats)[0]
                    : bench.run(std::array{there}, kRepeats)[0];
        state.SetIterationTime(static_cast<double>(bench.bytes()) / (rate * 1e9));
    }
    state.counters["GB/s"] = rate;
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run,
         int iterations) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(iterations)
        ->UseManualTime();
}

// Registers what this machine can do, and runs it.
void run() {
    tell_driver();
    const std::vector<Gpu> gpus = all_gpus();
    PeerMatrix matrix = PeerMatrix::query();
    const std::size_t small = is_emulated() ? 4096 : std::size_t{1} << 20;
    for (const PeerReport& report : check_peers(matrix, gpus, small)) {
        if (!report.right()) {
            fmt::print(stderr, "not used: {}: {}\n", describe(report.pair), report.failure);
        }
    }

    for (const std::size_t bytes : {std::size_t{2} << 20, std::size_t{256} << 20}) {
        const std::string size = format_bytes(bytes);
        add(
            "access/at_once/" + size, [=](auto& state) { give_access(state, bytes, true); }, 50);
        add(
            "access/one_by_one/" + size, [=](auto& state) { give_access(state, bytes, false); },
            50);
    }
    const std::vector<Pair> pairs = matrix.usable_pairs();
    const std::size_t bytes = is_emulated() ? std::size_t{64} << 10 : std::size_t{512} << 20;
    TransferBench bench(gpus, matrix, bytes);
    if (pairs.empty()) {
        fmt::print(stderr, "no two devices may use each other's memory: no transfers\n");
    } else {
        const Pair pair = pairs.front();
        const bool returns = matrix.usable({pair.owner, pair.accessor});
        for (const Method method : {Method::kLoads, Method::kStores, Method::kCopyEngine}) {
            const bool forwards =
                matrix.usable(PeerTransfer{pair.accessor, pair.owner, method}.access());
            for (const bool both : {false, true}) {
                if (forwards && (returns || !both)) {
                    add(
                        fmt::format("transfer/{}/{}/{}", name_of(method),
                                    both ? "both_directions" : "one_direction",
                                    format_bytes(bytes)),
                        [&bench, pair, method, both](auto& state) {
                            transfer(state, bench, pair, method, both);
                        },
                        3);
                }
            }
        }
        add(
            "latency/load",
            [&gpus, pair](benchmark::State& state) {
                for (auto _ : state) {
                    state.SetIterationTime(
                        1e-9 * load_latency_ns(gpus[static_cast<std::size_t>(pair.accessor)],
                                               gpus[static_cast<std::size_t>(pair.owner)],
                                               std::size_t{2} << 20, is_emulated() ? 64 : 16384));
                }
            },
            3);
    }
    benchmark::RunSpecifiedBenchmarks();
}

}  // namespace

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv, run);
}
