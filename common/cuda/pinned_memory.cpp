#include "common/cuda/pinned_memory.hpp"

#include <cstring>

#include "common/cuda/check.hpp"

namespace symm {

PinnedMemory::PinnedMemory(std::size_t bytes) {
    void* data = nullptr;
    cu_check(cuMemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
             "cuMemHostAlloc(size={}, PORTABLE|DEVICEMAP)", bytes);
    value_ = {data, bytes};
    std::memset(data, 0, bytes);
}

void PinnedMemory::give_back(const Sized<void*>& memory) {
    cu_check(cuMemFreeHost(memory.handle), "cuMemFreeHost()");
}

}  // namespace symm
