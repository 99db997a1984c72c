#pragma once
/// \file
/// Two owners: memory of one device, or of the host, that every named device reads and writes.

#include <cuda.h>

#include <cstddef>
#include <span>
#include <vector>

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/device_buffer.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Memory of one device, at one address that is valid on all its users: a pointer into it may be
/// handed to a kernel on any of them. Move-only. Destruction does not wait for kernels.
class SharedBuffer {
public:
    /// Owns nothing.
    SharedBuffer() = default;

    /// At least `bytes` (not 0) of `owner`, which `users` and the owner itself may read and write.
    /// Rounded up to the granularity. Throws CudaError, CUDA_ERROR_INVALID_DEVICE or its like where
    /// a user is no peer of the owner; nothing is left behind then.
    SharedBuffer(int owner, std::size_t bytes, std::span<const int> users);

    /// The address, the same on every user.
    CUdeviceptr base() const { return buffer_.base(); }
    template <class T>
    T* as() const {
        return buffer_.as<T>();
    }
    std::size_t size() const { return buffer_.size(); }
    /// The device whose memory it is.
    int owner() const { return buffer_.device(); }
    /// The devices that were given access, the owner among them.
    const std::vector<int>& users() const { return users_; }

private:
    DeviceBuffer buffer_;
    std::vector<int> users_;
};

/// Memory of one of the host's NUMA nodes, mapped like device memory: it has a handle that other
/// processes can import, which cuMemHostAlloc does not give. Nobody has access at first. Move-only.
class HostNumaBuffer {
public:
    /// Owns nothing.
    HostNumaBuffer() = default;

    /// At least `bytes` (not 0), rounded up to the granularity, on NUMA node `node`. Throws
    /// CudaError: CUDA_ERROR_NOT_SUPPORTED and NOT_PERMITTED are met in containers.
    HostNumaBuffer(int node, std::size_t bytes);

    CUdeviceptr base() const { return mapping_.address(); }
    /// The address as a pointer, for the host and for kernels alike.
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(base());
    }
    std::size_t size() const { return mapping_.size(); }
    int node() const { return node_; }

private:
    int node_ = 0;
    PhysicalMemory memory_;
    AddressRange range_;
    Mapping mapping_;
};

/// The NUMA node nearest to `device` (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID); 0 where the machine does
/// not say. Throws CudaError.
int host_node_of(int device);

}  // namespace symm
