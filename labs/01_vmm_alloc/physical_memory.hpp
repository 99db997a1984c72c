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
#include <utility>

namespace symm {

/// Owns one reference to physical memory. Move-only; empty holds handle 0.
class PhysicalMemory {
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

    PhysicalMemory(PhysicalMemory&& other) noexcept
        : handle_(std::exchange(other.handle_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
    PhysicalMemory& operator=(PhysicalMemory&& other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;
    ~PhysicalMemory() { reset(); }

    /// The driver's handle; 0 when empty.
    CUmemGenericAllocationHandle handle() const { return handle_; }
    /// Bytes behind the handle.
    std::size_t size() const { return bytes_; }
    explicit operator bool() const { return handle_ != 0; }

    /// With which properties the memory was created. Throws CudaError.
    CUmemAllocationProp properties() const;

    /// Drops the reference now and throws CudaError where the driver refuses. It is then still
    /// owned, and the destructor tries once more. The memory goes with the last reference or
    /// mapping.
    void drop();
    /// Gives the reference to the caller, who calls cuMemRelease.
    [[nodiscard]] CUmemGenericAllocationHandle release();
    /// Drops the reference now; a failure is logged.
    void reset() noexcept;

private:
    PhysicalMemory(CUmemGenericAllocationHandle handle, std::size_t bytes)
        : handle_(handle), bytes_(bytes) {}

    CUmemGenericAllocationHandle handle_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace symm
