// The latencies of this lab under Google Benchmark: two ranks that are threads, a kernel each,
// timed by events.

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "common/bench/bench_main.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/05_device_prims/latency_meter.hpp"
#include "labs/05_device_prims/ring/step_latency.hpp"

namespace {

using namespace symm;

constexpr std::uint32_t kRounds = 1000;

/// Each iteration reports the microseconds that `play(rank)` returns on rank 0 of two.
template <class Play>
void measure(benchmark::State& state, const Play& play) {
    if (is_emulated()) {
        state.SkipWithError("emulated: a GPU is needed for times");
        return;
    }
    for (auto _ : state) {
        double microseconds = 0;
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            const double mine = play(rank);
            if (rank.rank() == 0) {
                microseconds = mine;
            }
        });
        state.SetIterationTime(microseconds * 1e-6);
    }
}

/// Measures `kRounds` rounds of the latency test: `play(meter)` returns the time of one
/// round or one way, by the GPU's events.
template <class Play>
void measure_latency(benchmark::State& state, const Play& play) {
    measure(state, [&](Rank& rank) {
        LatencyMeter meter(rank);
        play(meter);  // warms up
        rank.bootstrap().barrier("warm");
        return play(meter);
    });
}

void one_way(benchmark::State& state) {
    const auto carrier = static_cast<Carrier>(state.range(0));
    state.SetLabel(std::string(name_of(carrier)));
    measure_latency(state, [&](LatencyMeter& meter) { return meter.ping_pong(carrier, kRounds); });
}

/// Eight bytes, one way. Protocol 3 is a bare flag.
void step_one_way(benchmark::State& state) {
    const auto number = static_cast<std::size_t>(state.range(0));
    RingOptions options;
    options.memory = static_cast<RingMemory>(state.range(1));
    options.channels = 1;
    const Protocol* protocol = number < kProtocols.size() ? &kProtocols.at(number) : nullptr;
    state.SetLabel(fmt::format("{} in {} memory", protocol ? name_of(*protocol) : "flag",
                               name_of(options.memory)));
    measure(state, [&](Rank& rank) {
        RingCommunicator warm(rank, options);  // the first launch loads the kernel
        step_latency(rank, warm, protocol, 10);
        RingCommunicator ring(rank, options);
        return step_latency(rank, ring, protocol, kRounds);
    });
}

void barrier(benchmark::State& state) {
    const auto blocks = static_cast<unsigned>(state.range(0));
    measure_latency(state,
                    [&](LatencyMeter& meter) { return meter.barriers(kRounds, blocks, 128); });
}

}  // namespace

BENCHMARK(one_way)->DenseRange(0, 2)->UseManualTime()->Iterations(5)->Unit(benchmark::kMicrosecond);
BENCHMARK(step_one_way)
    ->ArgsProduct({{0, 1, 2, 3}, {0}})
    ->ArgsProduct({{0, 1, 3}, {1}})
    ->UseManualTime()
    ->Iterations(5)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(barrier)->Arg(1)->Arg(8)->Arg(64)->UseManualTime()->Iterations(5)->Unit(
    benchmark::kMicrosecond);

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv);
}
