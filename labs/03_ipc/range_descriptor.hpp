#pragma once
/// \file
/// What a rank tells the others before a symmetric range is built.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace symm {

/// The memory a rank brings.
struct RangeDescriptor {
    std::uint64_t bytes = 0;              ///< Asked for.
    std::uint64_t unit = 0;               ///< Its device's granularity, a power of two.
    std::int64_t device = 0;              ///< Its device's ordinal.
    std::uint64_t kinds = 0;              ///< CUmemAllocationHandleType it can be exported as.
    std::vector<std::uint64_t> segments;  ///< The sizes of its pieces, in the order of addresses.
    /// Bytes of all segments.
    std::uint64_t total() const;
};

/// An offer as bytes. Throws std::length_error for more segments than one contribution holds.
std::vector<std::byte> pack(const RangeDescriptor& offer);

/// The offer in these bytes. Throws std::runtime_error where they are none.
RangeDescriptor unpack_range_descriptor(std::span<const std::byte> bytes);

/// From one rank's memory to the next: room for the longest offer. Throws std::invalid_argument
/// where ranks ask for different sizes, naming them, or for more than there are addresses. All
/// ranks see the same offers, so all come to the same conclusion, and none is left waiting.
std::size_t agreed_stride(const std::vector<RangeDescriptor>& offers);

}  // namespace symm
