// AllReduce under Google Benchmark, with as many ranks as GPUs, each a thread: ours, NCCL's default
// path and NCCL's symmetric path in turn. `06_allreduce --bytes 1K:1G` prints the same as a table.

#include <benchmark/benchmark.h>

#include "common/bench/bench_main.hpp"
#include "common/cli/bytes.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/06_allreduce/nccl_comparison.hpp"

namespace {

using namespace symm;

void all_reduce(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    if (is_emulated()) {
        state.SkipWithError("emulated: a GPU is needed for times");
        return;
    }
    const int ranks = std::min(device_count(), kMaxAllReduceRanks);
    for (auto _ : state) {
        Measured measured;
        run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
            Communicator communicator(rank);
            NcclComparison comparison(rank, communicator,
                                      {.most_bytes = bytes, .graph = state.range(1) != 0});
            const Measured mine = comparison.run(bytes / sizeof(float));
            if (rank.rank() == 0) {
                measured = mine;
            }
        });
        state.SetIterationTime(measured.ours * 1e-6);
        state.counters["bus_GB/s"] = bus_bandwidth(bytes, ranks, measured.ours);
        state.counters["nccl_us"] = measured.nccl.value_or(0);
        state.counters["nccl_sym_us"] = measured.nccl_symmetric.value_or(0);
    }
    state.SetLabel(format_bytes(bytes) + (state.range(1) != 0 ? " graph" : ""));
}

}  // namespace

BENCHMARK(all_reduce)
    ->ArgsProduct({benchmark::CreateRange(1 << 10, 1 << 30, 4), {0, 1}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMicrosecond);

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv);
}
