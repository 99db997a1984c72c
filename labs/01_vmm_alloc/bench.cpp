// What each call costs, and whole allocations beside cuMemAlloc, cudaMalloc and ncclMemAlloc.
//
// The memory is allocated and freed, not touched: what is measured is the driver. Sizes run from 2
// MiB to 8 GiB, or to what the device has.

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/bench_main.hpp"
#include "common/cli/bytes.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_library.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace {

using namespace symm;

constexpr std::string_view kCalls[] = {"cuDeviceGet",
                                       "cuDeviceGetAttribute",
                                       "cuMemGetAllocationGranularity",
                                       "cuMemCreate",
                                       "cuMemAddressReserve",
                                       "cuMemMap",
                                       "cuMemSetAccess",
                                       "cuMemRetainAllocationHandle",
                                       "cuMemGetAddressRange",
                                       "cuMemGetAllocationPropertiesFromHandle",
                                       "cuMemUnmap",
                                       "cuMemAddressFree",
                                       "cuMemRelease"};

constexpr std::string_view kContextCalls[] = {"cuCtxCreate", "cuCtxDestroy"};

// The seconds that a call takes, where it is the one asked for.
class Stopwatch {
public:
    explicit Stopwatch(std::string_view timed) : timed_(timed) {}
    template <class Call>
    void time(std::string_view name, const Call& call) {
        const auto start = std::chrono::steady_clock::now();
        call();
        const auto end = std::chrono::steady_clock::now();
        if (name == timed_) {
            seconds_ = std::chrono::duration<double>(end - start).count();
        }
    }
    double seconds() const { return seconds_; }

private:
    std::string_view timed_;
    double seconds_ = 0;
};

// Runs all calls of an allocation and times the one asked for.
void one_call(benchmark::State& state, std::string_view timed, std::size_t bytes) {
    const CUmemAllocationProp properties = device_memory(0);
    for (auto _ : state) {
        Stopwatch watch(timed);
        PhysicalMemory memory;
        PhysicalMemory retained;
        AddressRange range;
        Mapping mapping;
        CUdevice device = 0;
        watch.time("cuDeviceGet", [&] { device = device_handle(0); });
        watch.time("cuDeviceGetAttribute", [&] {
            int value = 0;
            cu_check(cuDeviceGetAttribute(
                         &value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
                     "cuDeviceGetAttribute()");
        });
        watch.time("cuMemGetAllocationGranularity", [&] { (void)granularity(properties); });
        watch.time("cuMemCreate", [&] { memory = PhysicalMemory::create(properties, bytes); });
        watch.time("cuMemAddressReserve", [&] { range = AddressRange(bytes); });
        watch.time("cuMemMap", [&] { mapping = Mapping(range.base(), bytes, memory); });
        watch.time("cuMemSetAccess", [&] { give_access(range.base(), bytes, 0); });
        watch.time("cuMemRetainAllocationHandle", [&] {
            CUmemGenericAllocationHandle handle = 0;
            cu_check(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(range.base())),
                     "cuMemRetainAllocationHandle()");
            retained = PhysicalMemory::adopt(handle, bytes);
        });
        watch.time("cuMemGetAddressRange", [&] {
            CUdeviceptr start = 0;
            std::size_t length = 0;
            cu_check(cuMemGetAddressRange(&start, &length, range.base()), "cuMemGetAddressRange()");
        });
        watch.time("cuMemGetAllocationPropertiesFromHandle", [&] { (void)memory.properties(); });
        retained.close();
        watch.time("cuMemUnmap", [&] { mapping.close(); });
        watch.time("cuMemAddressFree", [&] { range.close(); });
        watch.time("cuMemRelease", [&] { memory.close(); });
        state.SetIterationTime(watch.seconds());
    }
}

// The same for a context. OwnContext's constructor also takes it down from the thread's stack.
void one_context_call(benchmark::State& state, std::string_view timed) {
    for (auto _ : state) {
        Stopwatch watch(timed);
        std::optional<OwnContext> context;
        watch.time("cuCtxCreate", [&] { context.emplace(0); });
        watch.time("cuCtxDestroy", [&] { context.reset(); });
        state.SetIterationTime(watch.seconds());
    }
}

void ours(benchmark::State& state, std::size_t bytes) {
    for (auto _ : state) {
        mem_free(mem_alloc(bytes));
    }
}

void device_buffer(benchmark::State& state, std::size_t bytes) {
    for (auto _ : state) {
        const DeviceBuffer buffer(0, bytes);
        benchmark::DoNotOptimize(buffer.base());
    }
}

void plain(benchmark::State& state, std::size_t bytes) {
    for (auto _ : state) {
        CUdeviceptr memory = 0;
        cu_check(cuMemAlloc(&memory, bytes), "cuMemAlloc(size={})", bytes);
        cu_check(cuMemFree(memory), "cuMemFree()");
    }
}

void require(cudaError_t result, std::string_view call) {
    if (result != cudaSuccess) {
        throw std::runtime_error(fmt::format("{} failed: {}", call, cudaGetErrorName(result)));
    }
}

// The runtime, in the primary context of device 0 as all the others.
void runtime(benchmark::State& state, std::size_t bytes) {
    for (auto _ : state) {
        void* memory = nullptr;
        require(cudaMalloc(&memory, bytes), fmt::format("cudaMalloc({})", bytes));
        require(cudaFree(memory), "cudaFree()");
    }
}

void nccl(benchmark::State& state, const NcclLibrary& library, std::size_t bytes) {
    for (auto _ : state) {
        void* memory = nullptr;
        library.check(library.mem_alloc(&memory, bytes), fmt::format("ncclMemAlloc({})", bytes));
        library.check(library.mem_free(memory), "ncclMemFree()");
    }
}

benchmark::internal::Benchmark* add(const std::string& name,
                                    const std::function<void(benchmark::State&)>& run) {
    return benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
}

// Registers what this machine can do, and runs it.
void run() {
    tell_driver();
    const Device device(0);
    std::string why_not = "NCCL needs the real driver";
    const std::unique_ptr<NcclLibrary> library =
        is_emulated() ? nullptr : NcclLibrary::load(why_not);
    if (library == nullptr || library->mem_alloc == nullptr) {
        fmt::print(stderr, "without ncclMemAlloc: {}\n",
                   library == nullptr ? why_not : "this NCCL is older than 2.19");
    }
    if (is_emulated()) {
        fmt::print(stderr, "without cudaMalloc: the runtime needs the real driver\n");
    }

    for (std::string_view call : kCalls) {
        const std::size_t bytes = std::size_t{64} << 20;
        // A count of rounds, not a length of time: a round is all calls, and one of them is timed.
        add(fmt::format("call/{}/{}", call, format_bytes(bytes)),
            [=](benchmark::State& state) { one_call(state, call, bytes); })
            ->UseManualTime()
            ->Iterations(200);
    }
    for (std::string_view call : kContextCalls) {
        // Few: a GPU's context takes a good part of a second.
        add(fmt::format("call/{}", call),
            [=](benchmark::State& state) { one_context_call(state, call); })
            ->UseManualTime()
            ->Iterations(5);
    }
    for (std::size_t bytes = std::size_t{2} << 20; bytes <= std::size_t{8} << 30; bytes *= 4) {
        if (bytes > device.total_memory() / 2) {
            break;
        }
        const std::string size = format_bytes(bytes);
        std::vector<benchmark::internal::Benchmark*> rivals = {
            add("allocate_free/mem_alloc/" + size, [=](auto& state) { ours(state, bytes); }),
            add("allocate_free/DeviceBuffer/" + size,
                [=](auto& state) { device_buffer(state, bytes); }),
            add("allocate_free/cuMemAlloc/" + size, [=](auto& state) { plain(state, bytes); })};
        if (!is_emulated()) {
            rivals.push_back(add("allocate_free/cudaMalloc/" + size,
                                 [=](auto& state) { runtime(state, bytes); }));
        }
        if (library != nullptr && library->mem_alloc != nullptr) {
            rivals.push_back(add("allocate_free/ncclMemAlloc/" + size,
                                 [&library, bytes](auto& state) { nccl(state, *library, bytes); }));
        }
        for (auto* rival : rivals) {
            rival->UseRealTime();
        }
    }
    benchmark::RunSpecifiedBenchmarks();
}

}  // namespace

int main(int argc, char** argv) {
    return symm::bench_main(argc, argv, run);
}
