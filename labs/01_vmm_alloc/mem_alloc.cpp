#include "labs/01_vmm_alloc/mem_alloc.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/environment/environment.hpp"
#include "common/log/log.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

namespace {

constexpr auto kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr auto kFabric = CU_MEM_HANDLE_TYPE_FABRIC;

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

int attribute(CUdevice_attribute which, int device) {
    int value = 0;
    cu_check(cuDeviceGetAttribute(&value, which, device_handle(device)),
             "cuDeviceGetAttribute({}, device={})", static_cast<int>(which), device);
    return value;
}

bool wants_virtual_memory(int device) {
    return env::number("SYMM_CUMEM_ENABLE") == 1 &&
           attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) != 0;
}

// Devices (a bit each) where a FABRIC handle was refused although the attribute promised it: no
// IMEX channel, most often. Asking again would be refused again.
std::atomic<unsigned long long> fabric_refused{0};

CUmemAllocationProp shareable_memory(int device) {
    unsigned long long types = kPosix;
    if ((fabric_refused.load(std::memory_order_relaxed) >> (device % 64) & 1) == 0 &&
        attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device) != 0) {
        types |= kFabric;
    }
    CUmemAllocationProp properties = device_memory(device, types);
    // So that network cards may reach the memory too, where they can.
    properties.allocFlags.gpuDirectRDMACapable = static_cast<unsigned char>(
        attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device));
    return properties;
}

// Creates memory, without FABRIC handles where those are refused; `properties` says which it got.
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

// The device itself and every device that can reach its memory, reading and writing.
std::vector<CUmemAccessDesc> access_for_all(int device) {
    int count = 0;
    cu_check(cuDeviceGetCount(&count), "cuDeviceGetCount()");
    std::vector<CUmemAccessDesc> all;
    for (int other = 0; other < count; ++other) {
        if (can_access(other, device)) {
            CUmemAccessDesc access{};
            access.location = {CU_MEM_LOCATION_TYPE_DEVICE, other};
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            all.push_back(access);
        }
    }
    return all;
}

// The memory mapped at `address`, or nothing where nothing is.
std::optional<PhysicalMemory> memory_at(CUdeviceptr address) {
    std::optional<PhysicalMemory> memory;
    refusal({CUDA_ERROR_INVALID_VALUE}, [&] { memory = PhysicalMemory::mapped_at(address); });
    return memory;
}

}  // namespace

void* mem_alloc(std::size_t bytes, const MemAllocOptions& options) {
    if (bytes == 0) {
        throw CudaError(
            CUDA_ERROR_INVALID_VALUE,
            "mem_alloc(size=0) failed: CUDA_ERROR_INVALID_VALUE. Ask for a byte or more.");
    }
    int device = options.device;
    if (device < 0) {
        CUdevice current = 0;
        cu_check(cuCtxGetDevice(&current), "cuCtxGetDevice()");
        device = current;  // a handle, whose ordinal no call tells; NCCL takes it for one as well
    }
    if (!wants_virtual_memory(device)) {
        CUdeviceptr plain = 0;
        cu_check(cuMemAlloc(&plain, bytes), "cuMemAlloc(size={})", bytes);
        return reinterpret_cast<void*>(plain);
    }

    CUmemAllocationProp properties = shareable_memory(device);
    const std::size_t unit = granularity(properties);
    const std::size_t total = round_up(bytes, unit);
    const std::size_t piece = options.segment_bytes == 0 ? segment_size(total, unit)
                                                         : round_up(options.segment_bytes, unit);

    // In this order so that an exception undoes it backwards: mappings, then addresses.
    AddressRange range(total + 2 * unit, unit);
    std::vector<Mapping> mappings;
    mappings.reserve(total / piece + 1);
    const CUdeviceptr base = range.base() + unit;
    for (std::size_t offset = 0; offset < total;) {
        const std::size_t size = std::min(piece, total - offset);
        PhysicalMemory memory = create_shareable(properties, size);
        mappings.emplace_back(base + offset, size, memory);
        memory.close();  // the mapping keeps the memory alive from here on
        offset += size;
    }
    const std::vector<CUmemAccessDesc> access = access_for_all(device);
    cu_check(cuMemSetAccess(base, total, access.data(), access.size()),
             "cuMemSetAccess(address={:#x}, size={}, devices={})", base, total, access.size());

    // Nothing can fail any more: the pointer is the owner now.
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
    const CUdeviceptr base = address_of(pointer);
    const std::vector<Segment> segments = segments_from(pointer);
    if (segments.empty()) {
        cu_check(cuMemFree(base), "cuMemFree(address={:#x})", base);
        return;
    }
    if (memory_at(base - 1)) {
        throw std::invalid_argument(
            fmt::format("mem_free({:#x}): the address is the start of a later segment; give what "
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
    CUdeviceptr at = address_of(pointer);
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
