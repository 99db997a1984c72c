#include "labs/01_vmm_alloc/device_buffer.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

MappedMemory::MappedMemory(const CUmemAllocationProp& properties, std::size_t bytes) {
    const std::size_t rounded = round_up(bytes, granularity(properties));
    memory_ = PhysicalMemory::create(properties, rounded);
    range_ = AddressRange(rounded);
    mapping_ = Mapping(range_.base(), rounded, memory_);
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes)
    : MappedMemory(device_memory(device), bytes) {
    give_access(base(), size(), device);
}

void give_access(CUdeviceptr at, std::size_t bytes, int device) {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    cu_check(cuMemSetAccess(at, bytes, &access, 1),
             "cuMemSetAccess(address={:#x}, size={}, device={})", at, bytes, device);
}

std::vector<int> devices_that_reach(int owner) {
    std::vector<int> devices;
    for (int device = 0; device < device_count(); ++device) {
        if (can_access(device, owner)) {
            devices.push_back(device);
        }
    }
    return devices;
}

}  // namespace symm
