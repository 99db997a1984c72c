#include "labs/01_vmm_alloc/mapping.hpp"

#include "common/cuda/check.hpp"

namespace symm {

Mapping::Mapping(CUdeviceptr at, std::size_t bytes, const PhysicalMemory& memory) {
    // The offset into the memory must be 0: the manual allows no other yet.
    cu_check(cuMemMap(at, bytes, 0, memory.handle(), 0),
             "cuMemMap(address={:#x}, size={}, handle={:#x})", at, bytes, memory.handle());
    address_ = at;
    bytes_ = bytes;
}

void Mapping::unmap() {
    if (address_ != 0) {
        cu_check(cuMemUnmap(address_, bytes_), "cuMemUnmap(address={:#x}, size={})", address_,
                 bytes_);
        (void)release();
    }
}

CUdeviceptr Mapping::release() {
    bytes_ = 0;
    return std::exchange(address_, 0);
}

void Mapping::reset() noexcept {
    if (address_ != 0) {
        cu_check_nothrow(cuMemUnmap(address_, bytes_), "cuMemUnmap(address={:#x}, size={})",
                         address_, bytes_);
        (void)release();
    }
}

}  // namespace symm
