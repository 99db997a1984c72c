#include "common/cuda/device_memory.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"

namespace symm {

DeviceMemory::DeviceMemory(std::size_t bytes) {
    CUdeviceptr address = 0;
    cu_check(cuMemAlloc(&address, bytes), "cuMemAlloc(size={})", bytes);
    value_ = {address, bytes};
    zero(address, bytes);
}

void DeviceMemory::give_back(const Sized<CUdeviceptr>& memory) {
    cu_check(cuMemFree(memory.handle), "cuMemFree()");
}

}  // namespace symm
