// The latencies of this lab under Google Benchmark: two ranks that are threads, a kernel each,
// timed by events.

#include <benchmark/benchmark.h>

#include "common/bench/bench_main.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/05_device_prims/latency_meter.hpp"

namespace {

using namespace symm;

constexpr std::uint32_t kRounds = 1000;

/// Each iteration reports the microseconds that `play(meter)` returns on rank 0 of two, for
/// `kRounds` rounds of the latency test.
template <class Play>
void measure_latency(benchmark::State& state, const Play& play) {
    if (is_emulated()) {
        state.SkipWithError("emulated: a GPU is needed for times");
        return;
    }
    for (auto _ : state) {
        double microseconds = 0;
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            LatencyMeter meter(rank);
            play(meter);  // warms up
            rank.bootstrap().barrier("warm");
            const double mine = play(meter);
            if (rank.rank() == 0) {
                microseconds = mine;
            }
        });
        state.SetIterationTime(microseconds * 1e-6);
    }
}

void one_way(benchmark::State& state) {
    const auto carrier = static_cast<Carrier>(state.range(0));
    state.SetLabel(std::string(name_of(carrier)));
    measure_latency(state, [&](LatencyMeter& meter) { return meter.ping_pong(carrier, kRounds); });
}

void barrier(benchmark::State& state) {
    const auto blocks = static_cast<unsigned>(state.range(0));
    measure_latency(state,
                    [&](LatencyMeter& meter) { return meter.barriers(kRounds, blocks, 128); });
}

}  // namespace

BENCHMARK(one_way)->DenseRange(0, 2)->UseManualTime()->Iterations(5)->Unit(benchmark::kMicrosecond);
BENCHMARK(barrier)->Arg(1)->Arg(8)->Arg(64)->UseManualTime()->Iterations(5)->Unit(
    benchmark::kMicrosecond);

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv);
}
