#pragma once
/// \file
/// The owner of memory on one device that several devices read and write.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <vector>

#include "labs/01_vmm_alloc/device_buffer.hpp"

namespace symm {

/// Memory of one device, at one address that is valid on all its users: a pointer into it can be
/// given to a kernel on any of them. Move-only. Destruction does not wait for kernels.
class SharedBuffer : public MappedMemory {
public:
    /// Owns nothing.
    SharedBuffer() = default;

    /// At least `bytes` (not 0) of device `owner`, rounded up to the granularity, which `users` and
    /// the owner itself may read and write. Throws CudaError (CUDA_ERROR_INVALID_DEVICE, for
    /// example, where a user is no peer of the owner), and then leaves nothing behind.
    SharedBuffer(int owner, std::size_t bytes, std::span<const int> users);

    /// The devices that were given access, the owner among them.
    const std::vector<int>& users() const { return users_; }

private:
    std::vector<int> users_;
};

/// The host's NUMA node nearest to `device` (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID); 0 where the driver
/// names none. Throws CudaError.
int host_node_of(int device);

}  // namespace symm
