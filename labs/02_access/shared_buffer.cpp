#include "labs/02_access/shared_buffer.hpp"

#include <algorithm>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/02_access/access.hpp"

namespace symm {

SharedBuffer::SharedBuffer(int owner, std::size_t bytes, std::span<const int> users)
    : MappedMemory(device_memory(owner), bytes), users_(users.begin(), users.end()) {
    users_.push_back(owner);
    std::sort(users_.begin(), users_.end());
    users_.erase(std::unique(users_.begin(), users_.end()), users_.end());
    allow(base(), size(), users_);
}

int host_node_of(int device) {
    int node = 0;
    cu_check(cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device_handle(device)),
             "cuDeviceGetAttribute(HOST_NUMA_ID, device={})", device);
    return std::max(node, 0);  // -1: a machine with one node, or a driver that cannot tell
}

}  // namespace symm
