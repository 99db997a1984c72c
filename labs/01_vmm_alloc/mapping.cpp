#include "labs/01_vmm_alloc/mapping.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Mapping::Mapping(CUdeviceptr at, std::size_t bytes, const PhysicalMemory& memory) {
    // The offset into the memory must be 0: the manual allows no other value yet.
    cu_check(cuMemMap(at, bytes, 0, memory.handle(), 0),
             "cuMemMap(address={:#x}, size={}, handle={:#x})", at, bytes, memory.handle());
    value_ = {at, bytes};
}

void Mapping::give_back(const Sized<CUdeviceptr>& mapping) {
    cu_check(cuMemUnmap(mapping.handle, mapping.bytes), "cuMemUnmap(address={:#x}, size={})",
             mapping.handle, mapping.bytes);
}

}  // namespace symm
