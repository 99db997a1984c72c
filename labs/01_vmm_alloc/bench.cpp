// Times each call, and whole allocations next to cuMemAlloc, cudaMalloc and ncclMemAlloc.
//
// The memory is allocated and freed, not used: this measures the driver.

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/bench/bench_main.hpp"
#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"
#include "common/nccl/nccl_library.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/print.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/mem_alloc.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/own_context.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace {

using namespace symm;

constexpr std::size_t kBytesOfCalls = std::size_t{64} << 20;

// A round passes each of its calls to a function of this type, which makes the call, and registers
// or times it.
using Make = std::function<void(const std::string& name, const std::function<void()>& call)>;

void calls_of_an_allocation(const Make& make) {
    const CUmemAllocationProp properties = device_memory(0);
    PhysicalMemory memory;
    PhysicalMemory retained;
    AddressRange range;
    Mapping mapping;
    CUdevice device = 0;
    make("cuDeviceGet", [&] { device = device_handle(0); });
    make("cuDeviceGetAttribute", [&] {
        int value = 0;
        cu_check(cuDeviceGetAttribute(
                     &value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
                 "cuDeviceGetAttribute()");
    });
    make("cuMemGetAllocationGranularity", [&] { (void)granularity(properties); });
    make("cuMemCreate", [&] { memory = PhysicalMemory::create(properties, kBytesOfCalls); });
    make("cuMemAddressReserve", [&] { range = AddressRange(kBytesOfCalls); });
    make("cuMemMap", [&] { mapping = Mapping(range.base(), kBytesOfCalls, memory); });
    make("cuMemSetAccess", [&] { give_access(range.base(), kBytesOfCalls, 0); });
    make("cuMemRetainAllocationHandle", [&] {
        CUmemGenericAllocationHandle handle = 0;
        cu_check(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(range.base())),
                 "cuMemRetainAllocationHandle()");
        retained = PhysicalMemory::adopt(handle, kBytesOfCalls);
    });
    make("cuMemGetAddressRange", [&] {
        std::size_t length = 0;
        cu_check(cuMemGetAddressRange(nullptr, &length, range.base()), "cuMemGetAddressRange()");
    });
    make("cuMemGetAllocationPropertiesFromHandle", [&] { (void)memory.properties(); });
    retained.close();
    make("cuMemUnmap", [&] { mapping.close(); });
    make("cuMemAddressFree", [&] { range.close(); });
    make("cuMemRelease", [&] { memory.close(); });
}

void calls_of_a_context(const Make& make) {
    std::optional<OwnContext> context;
    make("cuCtxCreate", [&] { context.emplace(0); });
    make("cuCtxDestroy", [&] { context.reset(); });
}

// Registers a benchmark for each call of the round. A benchmark runs `rounds` whole rounds and
// times its own call.
void add_calls(const std::function<void(const Make&)>& round, int rounds) {
    round([&](const std::string& name, const std::function<void()>& first) {
        first();
        const auto run = [=](benchmark::State& state) {
            for (auto _ : state) {
                round([&](const std::string& other, const std::function<void()>& call) {
                    const auto start = std::chrono::steady_clock::now();
                    call();
                    const std::chrono::duration<double> time =
                        std::chrono::steady_clock::now() - start;
                    if (other == name) {
                        state.SetIterationTime(time.count());
                    }
                });
            }
        };
        benchmark::RegisterBenchmark(("call/" + name).c_str(), run)
            ->Unit(benchmark::kMicrosecond)
            ->UseManualTime()
            ->Iterations(rounds);
    });
}

// Registers every way to allocate and free `bytes`. Without NCCL `library` is null.
void add_allocations(std::size_t bytes, const NcclLibrary* library) {
    const auto add = [&](const std::string& name, const std::function<void()>& round) {
        benchmark::RegisterBenchmark(
            fmt::format("allocate_free/{}/{}", name, format_bytes(bytes)).c_str(),
            [=](benchmark::State& state) {
                for (auto _ : state) {
                    round();
                }
            })
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
    };
    add("mem_alloc", [=] { mem_free(mem_alloc(bytes)); });
    add("DeviceBuffer", [=] { const DeviceBuffer buffer(0, bytes); });
    add("cuMemAlloc", [=] {
        CUdeviceptr memory = 0;
        cu_check(cuMemAlloc(&memory, bytes), "cuMemAlloc(size={})", bytes);
        cu_check(cuMemFree(memory), "cuMemFree()");
    });
    if (!is_emulated()) {
        add("cudaMalloc", [=] {
            void* memory = nullptr;
            cu_check(static_cast<CUresult>(cudaMalloc(&memory, bytes)), "cudaMalloc({})", bytes);
            cu_check(static_cast<CUresult>(cudaFree(memory)), "cudaFree()");
        });
    }
    if (library != nullptr) {
        add("ncclMemAlloc", [=] {
            void* memory = nullptr;
            library->check(library->mem_alloc(&memory, bytes), "ncclMemAlloc()");
            library->check(library->mem_free(memory), "ncclMemFree()");
        });
    }
}

// Registers the benchmarks that this machine can run, on device 0, which it puts into `device`.
void add_benchmarks(std::optional<Device>& device) {
    tell_driver();
    device.emplace(0);
    std::string why_not = "NCCL and the runtime need the real driver";
    const auto library = is_emulated() ? nullptr : NcclLibrary::load(why_not);
    if (library == nullptr) {
        print_lines(STDERR_FILENO, "", "ncclMemAlloc skipped: " + why_not);
    }

    add_calls(calls_of_an_allocation, 200);
    add_calls(calls_of_a_context, 5);  // few: cuCtxCreate takes more than half a second
    const std::size_t most = std::min(std::size_t{8} << 30, device->total_memory() / 2);
    for (std::size_t bytes = std::size_t{2} << 20; bytes <= most; bytes *= 4) {
        add_allocations(bytes, library.get());
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::optional<symm::Device> device;  // its context is current until all benchmarks have run
    return symm::bench_main(argc, argv, [&] { add_benchmarks(device); });
}
