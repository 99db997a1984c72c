// What it costs to exchange file descriptors and to build a symmetric range. Ranks are threads here;
// `03_ipc --setup` times processes, beside NCCL.

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <chrono>

#include "common/bench/bench_main.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

// Makes `calls` calls on every rank, and reports rank 0's time of one.
template <class Call>
void time_calls(benchmark::State& state, int calls, const Call& call) {
    for (auto _ : state) {
        std::chrono::duration<double> took{};
        run_ranks({static_cast<int>(state.range(0)), RankMode::kThread, {}}, [&](Rank& rank) {
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

void exchange_fds(benchmark::State& state) {
    time_calls(state, 200, [](Rank& rank) {
        std::vector<UniqueFd> sent;
        sent.emplace_back(::memfd_create("symm-bench", MFD_CLOEXEC));
        rank.bootstrap().exchange("files", sent);
    });
}

void build_range(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(1));
    time_calls(state, 10, [&](Rank& rank) { const SymmetricRange range(rank, bytes); });
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv, [] {
        auto* exchange = benchmark::RegisterBenchmark("exchange_fds", symm::exchange_fds);
        exchange->ArgNames({"ranks"})->RangeMultiplier(2)->Range(1, 16);
        auto* range = benchmark::RegisterBenchmark("build_range", symm::build_range);
        range->ArgNames({"ranks", "bytes"})->ArgsProduct({{1, 2, 4, 8}, {2 << 20, 64 << 20}});
        for (auto* one : {exchange, range}) {
            one->Iterations(5)->UseManualTime()->Unit(benchmark::kMicrosecond);
        }
        benchmark::RunSpecifiedBenchmarks();
    });
}
