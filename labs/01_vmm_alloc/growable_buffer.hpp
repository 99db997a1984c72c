#pragma once
/// \file
/// A buffer that grows in place: no copy, and the pointer stays.
///
/// Addresses are cheap, so the buffer reserves the most it may ever need and maps memory behind as
/// much of it as is in use. Growing maps a further piece behind the last; shrinking unmaps pieces
/// from the end. A pointer into the buffer, a captured graph or a peer's mapping of it stays good.
///
///     reserved     |<-------------------- capacity -------------------->|
///     mapped       | piece 0 | piece 1      | piece 2 |  no memory yet  |
///                  ^ base(), for ever       size() -> ^
///
/// Source: CUDA Programming Guide, "Virtual Memory Management"; PyTorch's expandable segments
/// (c10/cuda/CUDACachingAllocator.cpp) are the same idea.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// Memory of one device that this device may read and write, as large as resize() last said.
/// Move-only. Not for several threads at once.
class GrowableBuffer {
public:
    /// A piece of the buffer, made by one call of resize().
    struct Piece {
        PhysicalMemory memory;
        Mapping mapping;
    };

    /// Reserves `capacity` bytes of addresses (rounded up to the granularity) and takes no memory
    /// yet. Throws CudaError.
    GrowableBuffer(int device, std::size_t capacity,
                   unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    /// Makes at least `bytes` usable and keeps what is in them.
    ///
    /// Growing takes one further piece; new memory holds whatever it held before. Shrinking gives
    /// back every piece that lies wholly beyond `bytes`: a mapping cannot be cut, so size() may
    /// stay above `bytes`. Wait for kernels that use the pieces before shrinking. Throws
    /// std::length_error beyond the capacity, CudaError where the driver refuses; the buffer then
    /// has the pieces it had, or fewer where the error came while shrinking.
    void resize(std::size_t bytes);

    /// The first address. It never changes.
    CUdeviceptr base() const { return range_.base(); }
    /// Usable bytes, a multiple of the granularity.
    std::size_t size() const {
        return pieces_.empty()
                   ? 0
                   : pieces_.back().mapping.address() + pieces_.back().mapping.size() - base();
    }
    /// The most that size() can become.
    std::size_t capacity() const { return range_.size(); }
    /// The pieces in the order of their addresses, for export.
    const std::vector<Piece>& pieces() const { return pieces_; }

private:
    void grow(std::size_t by);
    void shrink(std::size_t to);

    CUmemAllocationProp properties_;
    std::size_t unit_;
    AddressRange range_;
    std::vector<Piece> pieces_;  // unmapped before range_ goes
};

}  // namespace symm
