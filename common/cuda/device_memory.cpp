#include "common/cuda/device_memory.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/stream.hpp"

namespace symm {

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    const Stream stream;
    cu_check(cuMemAlloc(&address_, bytes), "cuMemAlloc(size={})", bytes);
    DeviceMemory owner(std::move(*this));  // gives it back where zeroing fails
    cu_check(cuMemsetD8Async(owner.address_, 0, bytes, stream.get()), "cuMemsetD8Async(size={})",
             bytes);
    stream.synchronize("zeroing device memory");
    *this = std::move(owner);
}

DeviceMemory::~DeviceMemory() {
    if (address_ != 0) {
        cu_check_nothrow(cuMemFree(address_), "cuMemFree()");
    }
}

}  // namespace symm
