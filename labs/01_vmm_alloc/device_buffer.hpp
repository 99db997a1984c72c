#pragma once
/// \file
/// The steps of an allocation (numbered in README.md) in two owners: MappedMemory, which cannot be
/// accessed yet, and DeviceBuffer, which one device reads and writes.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Physical memory mapped at an address: steps 1 to 4. It cannot be accessed yet. Move-only.
/// Destruction does not wait for kernels: synchronise first.
class MappedMemory {
public:
    MappedMemory() = default;

    /// At least `bytes` (not 0) with these properties, rounded up to the granularity. Needs an
    /// initialised driver, not a context. Throws CudaError.
    MappedMemory(const CUmemAllocationProp& properties, std::size_t bytes);

    CUdeviceptr base() const { return mapping_.address(); }
    /// The address as a pointer for kernels. The host may use it for host memory only.
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(base());
    }
    /// The requested bytes, rounded up. All of them are usable.
    std::size_t size() const { return mapping_.size(); }
    /// The physical memory, to be exported or mapped again.
    const PhysicalMemory& memory() const { return memory_; }
    explicit operator bool() const { return base() != 0; }

private:
    // In the order of the steps. Destruction runs backwards, as the driver requires: unmap, free
    // the addresses, release the memory.
    PhysicalMemory memory_;
    AddressRange range_;
    Mapping mapping_;
};

/// Memory of one device that this device may read and write: like cuMemAlloc's memory, but with a
/// handle. Move-only.
class DeviceBuffer : public MappedMemory {
public:
    DeviceBuffer() = default;
    /// At least `bytes` (not 0) of `device`, rounded up to the granularity. Throws CudaError.
    DeviceBuffer(int device, std::size_t bytes);
};

/// The devices that can be given access to memory of device `owner`: itself, and those that
/// cuDeviceCanAccessPeer allows. Throws CudaError.
std::vector<int> devices_that_reach(int owner);

/// Lets `device` read and write the mappings that fill [at, at + bytes): step 5. Lab 02 shows what
/// else cuMemSetAccess can do. Throws CudaError.
void give_access(CUdeviceptr at, std::size_t bytes, int device);

}  // namespace symm
