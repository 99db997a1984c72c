// The bandwidth of the transport between two GPUs.
//
// Transfers are timed by the host, from the launch to the end of the stream, between two ranks that
// are threads; the time of a transfer is the mean of many queued back to back.

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>

#include "common/bench/bench_main.hpp"
#include "common/cuda/driver.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/04_shm_transport/transport.hpp"

namespace {

using namespace symm;

// Rank 0 sends to rank 1; with `both`, rank 1 sends to rank 0 at the same time.
void transfer(benchmark::State& state, bool both) {
    const HostPathChoice choice = probe_host_path(0);
    const auto path = static_cast<HostPath>(state.range(0));
    if (path == HostPath::kCuMem && choice.path != HostPath::kCuMem) {
        state.SkipWithError(choice.why_not_cumem.c_str());
        return;
    }
    const auto bytes = static_cast<std::size_t>(state.range(1));
    TransportOptions options;
    options.path = path;
    const int queued = is_emulated() ? 2 : bytes > (16 << 20) ? 5 : 50;
    for (auto _ : state) {
        double seconds = 0;
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            const int peer = 1 - rank.rank();
            ShmTransport transport(rank, {&peer, 1}, options);
            const DeviceBuffer source(rank.device(), bytes);
            const DeviceBuffer destination(rank.device(), bytes);
            const Stream stream;
            const auto run = [&](int times) {
                rank.bootstrap().barrier("start");
                const auto start = std::chrono::steady_clock::now();
                for (int i = 0; i < times; ++i) {
                    if (both) {
                        transport.send_receive({peer, source.base(), bytes},
                                               {peer, destination.base(), bytes}, stream.get());
                    } else if (rank.rank() == 0) {
                        transport.send({peer, source.base(), bytes}, stream.get());
                    } else {
                        transport.receive({peer, destination.base(), bytes}, stream.get());
                    }
                }
                transport.finish(stream);
                const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
                return took.count() / times;
            };
            run(2);
            const double took = run(queued);
            if (rank.rank() == 1) {
                seconds = took;
            }
        });
        state.SetIterationTime(seconds);
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes) *
                            static_cast<std::int64_t>(state.iterations()));
    state.SetLabel(std::string(name_of(path)) +
                   (is_emulated() ? ", emulated: no measure of performance" : ""));
}

// On emulated GPUs the benchmark only shows that it runs, so small sizes are enough.
void add(const char* name, bool both) {
    auto* benchmark = benchmark::RegisterBenchmark(name, transfer, both);
    benchmark->ArgNames({"path", "bytes"})->Unit(benchmark::kMicrosecond);
    benchmark->UseManualTime()->Iterations(3);
    const std::int64_t most = is_emulated() ? 1 << 20 : 256 << 20;
    for (const HostPath path : {HostPath::kCuMem, HostPath::kPosix}) {
        for (std::int64_t bytes = 4096; bytes <= most; bytes *= 16) {
            benchmark->Args({static_cast<std::int64_t>(path), bytes});
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv, [] {
        add("one_way", false);
        add("both_ways", true);
        benchmark::RunSpecifiedBenchmarks();
    });
}
