#include "labs/02_access/access.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

void allow(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
           CUmemAccess_flags flags) {
    if (devices.empty()) {
        return;
    }
    std::vector<CUmemAccessDesc> list;
    for (const int device : devices) {
        list.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags});
    }
    cu_check(cuMemSetAccess(at, bytes, list.data(), list.size()),
             "cuMemSetAccess(address={:#x}, size={}, devices={}, {})", at, bytes,
             fmt::format("{}", fmt::join(devices, "+")), name_of(flags));
}

void allow_host(CUdeviceptr at, std::size_t bytes, int node) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, node},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cu_check(cuMemSetAccess(at, bytes, &access, 1),
             "cuMemSetAccess(address={:#x}, size={}, host NUMA node={})", at, bytes, node);
}

CUmemAccess_flags access_of(CUdeviceptr at, int id, CUmemLocationType type) {
    const CUmemLocation location = {type, id};
    unsigned long long flags = 0;
    cu_check(cuMemGetAccess(&flags, &location, at), "cuMemGetAccess(address={:#x}, {} {})", at,
             type == CU_MEM_LOCATION_TYPE_DEVICE ? "device" : "host NUMA node", id);
    return static_cast<CUmemAccess_flags>(flags);
}

std::string_view name_of(CUmemAccess_flags flags) {
    return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE   ? "none"
           : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? "read"
                                                    : "read/write";
}

int host_node_of(int device) {
    // -1 means one node, or a driver that cannot tell
    return std::max(0, device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID));
}

SharedBuffer::SharedBuffer(int owner, std::size_t bytes, std::span<const int> users)
    : MappedMemory(device_memory(owner), bytes) {
    std::set<int> all(users.begin(), users.end());
    all.insert(owner);
    allow(base(), size(), std::vector(all.begin(), all.end()));
}

}  // namespace symm
