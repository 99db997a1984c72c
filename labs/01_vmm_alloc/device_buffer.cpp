#include "labs/01_vmm_alloc/device_buffer.hpp"

#include "common/cuda/check.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes, unsigned long long handle_types)
    : device_(device) {
    const CUmemAllocationProp properties = device_memory(device, handle_types);
    const std::size_t rounded = round_up(bytes, granularity(properties));

    memory_ = PhysicalMemory::create(properties, rounded);
    range_ = AddressRange(rounded);
    mapping_ = Mapping(range_.base(), rounded, memory_);

    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    cu_check(cuMemSetAccess(base(), rounded, &access, 1),
             "cuMemSetAccess(address={:#x}, size={}, device={})", base(), rounded, device);
}

}  // namespace symm
