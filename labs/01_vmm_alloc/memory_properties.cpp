#include "labs/01_vmm_alloc/memory_properties.hpp"

#include <algorithm>
#include <limits>

#include "common/cuda/check.hpp"

namespace symm {

CUmemAllocationProp device_memory(int device, unsigned long long handle_types) {
    CUmemAllocationProp properties{};  // reserved fields must be zero
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
    return properties;
}

CUmemAllocationProp host_numa_memory(int node) {
    CUmemAllocationProp properties = device_memory(node);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    return properties;
}

std::size_t granularity(const CUmemAllocationProp& properties,
                        CUmemAllocationGranularity_flags flags) {
    std::size_t bytes = 0;
    cu_check(cuMemGetAllocationGranularity(&bytes, &properties, flags),
             "cuMemGetAllocationGranularity({} {})", kind_name(properties), properties.location.id);
    return bytes;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
    const std::size_t most = std::numeric_limits<std::size_t>::max() / unit;
    const std::size_t units = bytes / unit + (bytes % unit != 0);
    return std::min(units, most) * unit;
}

std::size_t segment_size(std::size_t bytes, std::size_t unit) {
    constexpr std::size_t kQuick = std::size_t{256} << 20;
    constexpr std::size_t kMostSegments = 64;
    return round_up(std::max(kQuick, bytes / kMostSegments), unit);
}

const char* kind_name(const CUmemAllocationProp& properties) {
    return properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? "device" : "host NUMA node";
}

}  // namespace symm
