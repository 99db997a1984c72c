#pragma once
/// \file
/// The owner of physical memory: a handle, without an address.
///
/// `cuMemCreate` takes pages of a device (or of the host) and returns a handle. The pages have no
/// address yet and no device can use them: AddressRange and Mapping give them one. One handle may
/// be mapped at several addresses, and in several processes.
///
/// The driver counts references. Each handle is one reference, and each mapping is one; the pages
/// are freed with the last of them. So a handle may be released while the memory is mapped, and
/// most programs do that.
///
/// Source: CUDA Driver API, cuMemCreate, cuMemRelease, cuMemRetainAllocationHandle.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns one reference to physical memory. Move-only; handle 0 if empty.
class PhysicalMemory : public Owner<PhysicalMemory, Sized<CUmemGenericAllocationHandle>> {
public:
    PhysicalMemory() = default;

    /// Takes `bytes` of physical memory with these properties. Does not round: if the size is
    /// not a multiple of the granularity, the error names the granularity. Throws CudaError.
    static PhysicalMemory create(const CUmemAllocationProp& properties, std::size_t bytes);

    /// Becomes the owner of a handle from another call (an import, a retain).
    static PhysicalMemory adopt(CUmemGenericAllocationHandle handle, std::size_t bytes);

    /// Another reference to the memory that is mapped at `address`; size() is the length of that
    /// mapping, which the driver reports only if a device has access, and only to a thread with
    /// a current context (any). Throws CudaError if nothing made by cuMemCreate is mapped.
    static PhysicalMemory mapped_at(CUdeviceptr address);

    /// The driver's handle; 0 when empty.
    CUmemGenericAllocationHandle handle() const { return value_.handle; }
    std::size_t size() const { return value_.bytes; }

    /// The properties that the memory was created with. Throws CudaError.
    CUmemAllocationProp properties() const;

    /// cuMemRelease: the memory is freed with the last reference or mapping.
    static void give_back(const Sized<CUmemGenericAllocationHandle>& memory);

private:
    using Owner::Owner;
};

}  // namespace symm
