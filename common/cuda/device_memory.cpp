#include "common/cuda/device_memory.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/stream.hpp"

namespace symm {

DeviceMemory::DeviceMemory(std::size_t bytes) {
    const Stream stream;
    CUdeviceptr address = 0;
    cu_check(cuMemAlloc(&address, bytes), "cuMemAlloc(size={})", bytes);
    value_ = {address, bytes};
    cu_check(cuMemsetD8Async(address, 0, bytes, stream.get()), "cuMemsetD8Async(size={})", bytes);
    stream.synchronize("zeroing device memory");
}

void DeviceMemory::give_back(const Sized<CUdeviceptr>& memory) {
    cu_check(cuMemFree(memory.handle), "cuMemFree()");
}

}  // namespace symm
