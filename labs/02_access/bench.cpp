// The cost of giving access: one call for all devices, and one call per device. The program's
// --bandwidth shows how fast the links are.

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <chrono>
#include <span>
#include <vector>

#include "common/bench/bench_main.hpp"
#include "common/cuda/gpu.hpp"
#include "common/sys/bytes.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"

namespace {

using namespace symm;

// Only the calls of cuMemSetAccess are timed: the memory is made and freed outside.
void give_access_to_all(benchmark::State& state, std::size_t bytes, bool at_once) {
    const std::vector<int> users = devices_that_reach(0);
    const std::size_t per_call = at_once ? users.size() : 1;
    for (auto _ : state) {
        const MappedMemory memory(device_memory(0), bytes);
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t first = 0; first < users.size(); first += per_call) {
            allow(memory.base(), memory.size(), std::span(users).subspan(first, per_call));
        }
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        state.SetIterationTime(time.count());
    }
}

void add_benchmarks(std::vector<Gpu>& contexts) {
    tell_driver();
    contexts = all_gpus();
    for (const std::size_t bytes : {std::size_t{2} << 20, std::size_t{256} << 20}) {
        for (const bool at_once : {true, false}) {
            const std::string name = fmt::format("access/{}/{}", at_once ? "at_once" : "one_by_one",
                                                 format_bytes(bytes));
            benchmark::RegisterBenchmark(
                name.c_str(), [=](auto& state) { give_access_to_all(state, bytes, at_once); })
                ->Unit(benchmark::kMicrosecond)
                ->Iterations(50)
                ->UseManualTime();
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<symm::Gpu> contexts;  // for all benchmarks, so that no timed call creates one
    return symm::bench_main(argc, argv, [&] { add_benchmarks(contexts); });
}
