#pragma once
/// \file
/// A buffer that grows in place: nothing is copied, and its address stays the same.
///
/// Addresses are cheap, so the buffer reserves as many as it may ever need, and maps memory only at
/// the part in use. Growing maps one more piece after the last; shrinking unmaps pieces from the
/// end. Pointers into the buffer and captured graphs that use it stay valid.
///
///     reserved     |<-------------------- capacity -------------------->|
///     mapped       | piece 0 | piece 1      | piece 2 |  no memory yet  |
///                  ^ base(), never changes  size() -> ^
///
/// Source: CUDA Programming Guide, "Virtual Memory Management"; PyTorch's expandable segments
/// (c10/cuda/CUDACachingAllocator.cpp) are the same idea.

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"

namespace symm {

/// Memory of one device that this device may read and write, as large as the last resize() made it.
/// Move-only. Not thread-safe.
class GrowableBuffer {
public:
    /// Reserves `capacity` bytes of addresses (rounded up to the granularity) and takes no memory
    /// yet. Throws CudaError.
    GrowableBuffer(int device, std::size_t capacity);

    /// Makes at least `bytes` usable and keeps their contents.
    ///
    /// Growing adds one piece, with undefined contents. Shrinking gives back every piece that lies
    /// wholly beyond `bytes`. A mapping cannot be unmapped in part, so size() may stay above
    /// `bytes`. Wait for kernels that use the pieces before shrinking. Throws std::length_error
    /// beyond the capacity, CudaError if the driver refuses; the buffer then keeps its pieces,
    /// or has fewer if the error came while shrinking.
    void resize(std::size_t bytes);

    /// The first address. It never changes.
    CUdeviceptr base() const { return range_.base(); }
    /// Usable bytes, a multiple of the granularity.
    std::size_t size() const {
        return pieces_.empty() ? 0 : pieces_.back().address() + pieces_.back().size() - base();
    }
    /// The most that size() can become.
    std::size_t capacity() const { return range_.size(); }
    /// The pieces in the order of their addresses, each made by one call of resize().
    const std::vector<Mapping>& pieces() const { return pieces_; }

private:
    int device_;
    std::size_t unit_;
    AddressRange range_;
    std::vector<Mapping> pieces_;  // after range_: unmapped before the addresses are freed
};

}  // namespace symm
