#include "common/cuda/pinned_memory.hpp"

#include <cstring>

#include "common/cuda/check.hpp"

namespace symm {

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
    cu_check(cuMemHostAlloc(&data_, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
             "cuMemHostAlloc(size={}, PORTABLE|DEVICEMAP)", bytes);
    std::memset(data_, 0, bytes);
}

PinnedMemory::~PinnedMemory() {
    if (data_ != nullptr) {
        cu_check_nothrow(cuMemFreeHost(data_), "cuMemFreeHost()");
    }
}

}  // namespace symm
