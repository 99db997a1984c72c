#pragma once
/// \file
/// A buffer on one device: the eight steps of an allocation in one owner.

#include <cuda.h>

#include <cstddef>

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Memory of one device that this device may read and write, what cuMemAlloc gives and a handle
/// besides. Move-only. Destruction does not wait for kernels: synchronise first.
class DeviceBuffer {
public:
    /// Owns nothing.
    DeviceBuffer() = default;

    /// At least `bytes` (not 0) on `device`, rounded up to the granularity. Needs an initialised
    /// driver, not a context. `handle_types` as for device_memory(). Throws CudaError.
    DeviceBuffer(int device, std::size_t bytes,
                 unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    /// The address, on the device.
    CUdeviceptr base() const { return mapping_.address(); }
    /// The address as a pointer for kernels; the host must not follow it.
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(base());
    }
    /// Bytes asked for, rounded up: all of them are usable.
    std::size_t size() const { return mapping_.size(); }
    /// The device whose memory it is.
    int device() const { return device_; }
    /// The physical memory, to be exported or mapped once more.
    const PhysicalMemory& memory() const { return memory_; }
    explicit operator bool() const { return base() != 0; }

private:
    int device_ = 0;
    // In the order of the steps. Destruction runs backwards, as the driver wants it: unmap, free
    // the addresses, release the memory.
    PhysicalMemory memory_;
    AddressRange range_;
    Mapping mapping_;
};

}  // namespace symm
