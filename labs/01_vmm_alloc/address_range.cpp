#include "labs/01_vmm_alloc/address_range.hpp"

#include "common/cuda/check.hpp"

namespace symm {

AddressRange::AddressRange(std::size_t bytes, std::size_t alignment) {
    cu_check(cuMemAddressReserve(&base_, bytes, alignment, 0, 0),
             "cuMemAddressReserve(size={}, alignment={})", bytes, alignment);
    bytes_ = bytes;
}

AddressRange AddressRange::adopt(CUdeviceptr base, std::size_t bytes) {
    AddressRange range;
    range.base_ = base;
    range.bytes_ = bytes;
    return range;
}

void AddressRange::free() {
    if (base_ != 0) {
        cu_check(cuMemAddressFree(base_, bytes_), "cuMemAddressFree(address={:#x}, size={})", base_,
                 bytes_);
        (void)release();
    }
}

CUdeviceptr AddressRange::release() {
    bytes_ = 0;
    return std::exchange(base_, 0);
}

void AddressRange::reset() noexcept {
    if (base_ != 0) {
        cu_check_nothrow(cuMemAddressFree(base_, bytes_),
                         "cuMemAddressFree(address={:#x}, size={})", base_, bytes_);
        (void)release();
    }
}

}  // namespace symm
