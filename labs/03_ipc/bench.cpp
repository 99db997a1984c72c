// What meeting, talking and sharing cost. Ranks are threads here; what they do is the same as
// between processes. `03_ipc --setup` times processes, beside NCCL.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <chrono>

#include "common/bench/bench_main.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

// Runs `call` on every rank, many times over, and reports rank 0's time of one.
template <class Call>
void time_calls(benchmark::State& state, int calls, const Call& call) {
    const int ranks = static_cast<int>(state.range(0));
    for (auto _ : state) {
        std::chrono::duration<double> took{};
        run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
            rank.bootstrap().barrier("ready");
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < calls; ++i) {
                call(rank);
            }
            rank.bootstrap().barrier("done");
            if (rank.rank() == 0) {
                took = std::chrono::steady_clock::now() - start;
            }
        });
        state.SetIterationTime(took.count() / calls);
    }
}

void Barrier(benchmark::State& state) {
    time_calls(state, 200, [](Rank& rank) { rank.bootstrap().barrier("barrier"); });
}
BENCHMARK(Barrier)->RangeMultiplier(2)->Range(1, 16)->Iterations(5)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

void Allgather(benchmark::State& state) {
    time_calls(state, 200, [](Rank& rank) { rank.bootstrap().allgather("value", rank.rank()); });
}
BENCHMARK(Allgather)->RangeMultiplier(2)->Range(1, 16)->Iterations(5)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

void ExchangeOfDescriptors(benchmark::State& state) {
    time_calls(state, 200, [](Rank& rank) {
        std::vector<UniqueFd> mine;
        mine.emplace_back(::memfd_create("symm-bench", MFD_CLOEXEC));
        rank.bootstrap().exchange("files", mine);
    });
}
BENCHMARK(ExchangeOfDescriptors)
    ->RangeMultiplier(2)
    ->Range(1, 16)
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Made, mapped by all, and gone again.
void Range(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(1));
    time_calls(state, 10, [&](Rank& rank) { const SymmetricRange range(rank, bytes); });
}
BENCHMARK(Range)
    ->ArgsProduct({{1, 2, 4, 8}, {2 << 20, 64 << 20}})
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv);
}
