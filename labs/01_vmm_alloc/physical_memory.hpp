#pragma once
/// \file
/// The owner of physical memory: a handle, without an address.
///
/// `cuMemCreate` takes pages of a device (or of the host) and answers with a handle. The pages have
/// no address yet and nobody can touch them: that is what AddressRange and Mapping are for. One
/// handle may be mapped at several addresses, and in several processes.
///
/// The driver counts references. Each handle and each mapping is one: the pages go back when the
/// last of them has gone. Releasing the handle while a mapping stands is therefore legal, and what
/// most programs do.
///
/// Source: CUDA Driver API, cuMemCreate, cuMemRelease, cuMemRetainAllocationHandle.

#include <cuda.h>

#include <cstddef>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns one reference to physical memory. Move-only; empty holds handle 0.
class PhysicalMemory : public Owner<PhysicalMemory, Sized<CUmemGenericAllocationHandle>> {
public:
    /// Owns nothing.
    PhysicalMemory() = default;

    /// Takes `bytes` of physical memory with the given properties. Rounds nothing: `bytes` must be
    /// a multiple of the granularity, and the error says which that is. Throws CudaError.
    static PhysicalMemory create(const CUmemAllocationProp& properties, std::size_t bytes);

    /// Becomes the owner of a handle that came from elsewhere (an import, a retain).
    static PhysicalMemory adopt(CUmemGenericAllocationHandle handle, std::size_t bytes);

    /// A further reference to the memory that is mapped at `address`; size() is the length of that
    /// mapping, which the driver tells only where somebody has access. Throws CudaError where nothing
    /// made by cuMemCreate is mapped.
    static PhysicalMemory mapped_at(CUdeviceptr address);

    /// The driver's handle; 0 when empty.
    CUmemGenericAllocationHandle handle() const { return value_.handle; }
    /// Bytes behind the handle.
    std::size_t size() const { return value_.bytes; }

    /// With which properties the memory was created. Throws CudaError.
    CUmemAllocationProp properties() const;

    /// cuMemRelease: the memory itself goes with the last reference or mapping.
    static void give_back(const Sized<CUmemGenericAllocationHandle>& memory);

private:
    using Owner::Owner;
};

}  // namespace symm
