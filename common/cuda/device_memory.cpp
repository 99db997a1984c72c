#include "common/cuda/device_memory.hpp"

#include "common/cuda/check.hpp"

namespace symm {

DeviceMemory::DeviceMemory(std::size_t bytes) {
    CUdeviceptr address = 0;
    cu_check(cuMemAlloc(&address, bytes), "cuMemAlloc(size={})", bytes);
    value_ = {address, bytes};
    // No stream of its own: streams share a few hardware queues (docs/DESIGN.md).
    cu_check(cuMemsetD8Async(address, 0, bytes, nullptr), "cuMemsetD8Async(size={})", bytes);
    cu_check(cuStreamSynchronize(nullptr), "cuStreamSynchronize(the default stream)");
}

void DeviceMemory::give_back(const Sized<CUdeviceptr>& memory) {
    cu_check(cuMemFree(memory.handle), "cuMemFree()");
}

}  // namespace symm
