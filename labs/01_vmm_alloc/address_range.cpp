#include "labs/01_vmm_alloc/address_range.hpp"

#include "common/cuda/check.hpp"

namespace symm {

AddressRange::AddressRange(std::size_t bytes, std::size_t alignment) {
    CUdeviceptr base = 0;
    cu_check(cuMemAddressReserve(&base, bytes, alignment, 0, 0),
             "cuMemAddressReserve(size={}, alignment={})", bytes, alignment);
    value_ = {base, bytes};
}

AddressRange AddressRange::adopt(CUdeviceptr base, std::size_t bytes) {
    return AddressRange(Sized<CUdeviceptr>{base, bytes});
}

void AddressRange::give_back(const Sized<CUdeviceptr>& range) {
    cu_check(cuMemAddressFree(range.handle, range.bytes),
             "cuMemAddressFree(address={:#x}, size={})", range.handle, range.bytes);
}

}  // namespace symm
