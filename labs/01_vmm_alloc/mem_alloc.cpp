#include "labs/01_vmm_alloc/mem_alloc.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/environment.hpp"
#include "common/sys/log.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

namespace {

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr auto kFabric = CU_MEM_HANDLE_TYPE_FABRIC;

// One bit per device: a FABRIC handle was refused although the attribute promised it, most often
// because there is no IMEX channel. A second request would be refused too.
std::atomic<unsigned long long> fabric_refused{0};

CUmemAllocationProp shareable_memory(int device) {
    unsigned long long types = kPosix;
    if ((fabric_refused.load(std::memory_order_relaxed) >> (device % 64) & 1) == 0 &&
        device_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) != 0) {
        types |= kFabric;
    }
    CUmemAllocationProp properties = device_memory(device, types);
    properties.allocFlags.gpuDirectRDMACapable = static_cast<unsigned char>(
        device_attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED));
    return properties;
}

// Creates memory, without FABRIC handles if those are refused; afterwards `properties` has the
// memory's handle types.
PhysicalMemory create_shareable(CUmemAllocationProp& properties, std::size_t bytes) {
    if ((properties.requestedHandleTypes & kFabric) != 0) {
        PhysicalMemory memory;
        const auto refused = refusal({CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_SUPPORTED},
                                     [&] { memory = PhysicalMemory::create(properties, bytes); });
        if (!refused) {
            return memory;
        }
        log::debug("no FABRIC handles on device {}: {}", properties.location.id, refused->what());
        fabric_refused.fetch_or(1ull << (properties.location.id % 64), std::memory_order_relaxed);
        properties.requestedHandleTypes = kPosix;
    }
    return PhysicalMemory::create(properties, bytes);
}

// The memory mapped at `address`, or nothing if none is.
std::optional<PhysicalMemory> memory_at(CUdeviceptr address) {
    std::optional<PhysicalMemory> memory;
    refusal({CUDA_ERROR_INVALID_VALUE}, [&] { memory = PhysicalMemory::mapped_at(address); });
    return memory;
}

}  // namespace

void* mem_alloc(std::size_t bytes, std::size_t segment_bytes) {
    // This is a device handle, used as an ordinal below. No call returns the ordinal of a handle;
    // on every machine so far both are the same number, and NCCL relies on that too.
    CUdevice device = 0;
    cu_check(cuCtxGetDevice(&device), "cuCtxGetDevice()");
    if (env::number("SYMM_CUMEM_ENABLE") == 0 ||
        device_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
        CUdeviceptr plain = 0;
        cu_check(cuMemAlloc(&plain, bytes), "cuMemAlloc(size={})", bytes);
        return reinterpret_cast<void*>(plain);
    }

    CUmemAllocationProp properties = shareable_memory(device);
    const std::size_t unit = granularity(properties);
    const std::size_t total = round_up(bytes, unit);
    const std::size_t piece =
        segment_bytes == 0 ? segment_size(total, unit) : round_up(segment_bytes, unit);

    // In this order, so that an exception first unmaps and then frees the addresses.
    AddressRange range(total + 2 * unit, unit);
    std::vector<Mapping> mappings;
    mappings.reserve(total / piece + 1);
    const CUdeviceptr base = range.base() + unit;
    for (std::size_t offset = 0; offset < total;) {
        const std::size_t size = std::min(piece, total - offset);
        PhysicalMemory memory = create_shareable(properties, size);
        mappings.emplace_back(base + offset, size, memory);
        memory.close();  // the mapping keeps the memory
        offset += size;
    }
    std::vector<CUmemAccessDesc> access;
    for (const int user : devices_that_reach(device)) {
        access.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, user}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    cu_check(cuMemSetAccess(base, total, access.data(), access.size()),
             "cuMemSetAccess(address={:#x}, size={}, devices={})", base, total, access.size());

    // Nothing can fail any more: the pointer replaces the owners.
    for (Mapping& mapping : mappings) {
        (void)mapping.release();
    }
    (void)range.release();
    return reinterpret_cast<void*>(base);
}

void mem_free(void* pointer) {
    if (pointer == nullptr) {
        return;
    }
    const CUdeviceptr base = reinterpret_cast<CUdeviceptr>(pointer);
    const std::vector<Segment> segments = segments_from(pointer);
    if (segments.empty()) {
        cu_check(cuMemFree(base), "cuMemFree(address={:#x})", base);
        return;
    }
    if (memory_at(base - 1)) {
        throw std::invalid_argument(
            fmt::format("mem_free({:#x}): the address is the start of a later segment; pass what "
                        "mem_alloc returned",
                        base));
    }
    const CUdeviceptr end = segments.back().address + segments.back().bytes;
    const std::size_t unit = granularity(segments.front().properties);

    cu_check(cuMemUnmap(base, end - base), "cuMemUnmap(address={:#x}, size={})", base, end - base);
    AddressRange::adopt(base - unit, end - base + 2 * unit).close();
}

std::vector<Segment> segments_from(const void* pointer) {
    std::vector<Segment> segments;
    CUdeviceptr at = reinterpret_cast<CUdeviceptr>(pointer);
    while (std::optional<PhysicalMemory> memory = memory_at(at)) {
        CUdeviceptr start = 0;
        cu_check(cuMemGetAddressRange(&start, nullptr, at), "cuMemGetAddressRange(address={:#x})",
                 at);
        if (start != at) {
            throw std::invalid_argument(
                fmt::format("address {:#x} lies inside a segment that starts at {:#x}", at, start));
        }
        segments.push_back({at, memory->size(), memory->properties()});
        at += memory->size();
        memory->close();
    }
    return segments;
}

}  // namespace symm
