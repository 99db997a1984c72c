#include "labs/02_access/access.hpp"

#include <fmt/format.h>

#include <numeric>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

namespace symm {
namespace {

CUmemAccessDesc access_for(CUmemLocationType type, int id, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location.type = type;
    access.location.id = id;
    access.flags = flags;
    return access;
}

CUmemAccess_flags get_access(CUdeviceptr at, CUmemLocationType type, int id) {
    const CUmemLocation location = access_for(type, id, CU_MEM_ACCESS_FLAGS_PROT_NONE).location;
    unsigned long long flags = 0;
    cu_check(cuMemGetAccess(&flags, &location, at), "cuMemGetAccess(address={:#x}, {} {})", at,
             type == CU_MEM_LOCATION_TYPE_DEVICE ? "device" : "host NUMA node", id);
    return static_cast<CUmemAccess_flags>(flags);
}

}  // namespace

void allow(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
           CUmemAccess_flags flags) {
    if (devices.empty()) {
        return;
    }
    std::vector<CUmemAccessDesc> list;
    list.reserve(devices.size());
    for (const int device : devices) {
        list.push_back(access_for(CU_MEM_LOCATION_TYPE_DEVICE, device, flags));
    }
    cu_check(cuMemSetAccess(at, bytes, list.data(), list.size()),
             "cuMemSetAccess(address={:#x}, size={}, devices={}, {})", at, bytes,
             fmt::join(devices, "+"), name_of(flags));
}

void allow_one_by_one(CUdeviceptr at, std::size_t bytes, std::span<const int> devices,
                      CUmemAccess_flags flags) {
    for (const int& device : devices) {
        allow(at, bytes, std::span(&device, 1), flags);
    }
}

void allow_host(CUdeviceptr at, std::size_t bytes, int node, CUmemAccess_flags flags) {
    const CUmemAccessDesc access = access_for(CU_MEM_LOCATION_TYPE_HOST_NUMA, node, flags);
    cu_check(cuMemSetAccess(at, bytes, &access, 1),
             "cuMemSetAccess(address={:#x}, size={}, host NUMA node={}, {})", at, bytes, node,
             name_of(flags));
}

void forbid(CUdeviceptr at, std::size_t bytes, std::span<const int> devices) {
    allow(at, bytes, devices, CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

CUmemAccess_flags access_of(CUdeviceptr at, int device) {
    return get_access(at, CU_MEM_LOCATION_TYPE_DEVICE, device);
}

CUmemAccess_flags host_access_of(CUdeviceptr at, int node) {
    return get_access(at, CU_MEM_LOCATION_TYPE_HOST_NUMA, node);
}

std::string_view name_of(CUmemAccess_flags flags) {
    switch (flags) {
        case CU_MEM_ACCESS_FLAGS_PROT_NONE:
            return "none";
        case CU_MEM_ACCESS_FLAGS_PROT_READ:
            return "read";
        case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
            return "read/write";
        default:
            return "an unlisted right";
    }
}

std::vector<int> all_devices() {
    std::vector<int> devices(static_cast<std::size_t>(device_count()));
    std::iota(devices.begin(), devices.end(), 0);
    return devices;
}

std::vector<int> devices_that_reach(int owner) {
    std::vector<int> devices = all_devices();
    std::erase_if(devices, [&](int device) { return !can_access(device, owner); });
    return devices;
}

}  // namespace symm
