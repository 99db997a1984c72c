#pragma once
/// \file
/// What a rank tells the others of its memory before a symmetric range is built. (Not a file
/// descriptor: those are sent later, one for each segment.)

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace symm {

/// The memory of one rank.
struct RangeDescriptor {
    std::uint64_t bytes = 0;              ///< Asked for.
    std::uint64_t granularity = 0;        ///< Of its device, a power of two.
    std::int64_t device = 0;              ///< The ordinal of its device.
    std::uint64_t kinds = 0;              ///< Set of CUmemAllocationHandleType to export it as.
    std::vector<std::uint64_t> segments;  ///< Their sizes, in the order of addresses.
    /// Bytes of all segments.
    std::uint64_t total() const;
};

/// The descriptor as bytes. Throws std::length_error for more segments than one message holds.
std::vector<std::byte> pack(const RangeDescriptor& descriptor);

/// The descriptor in these bytes. Throws std::runtime_error where they are none, or impossible.
RangeDescriptor unpack_range_descriptor(std::span<const std::byte> bytes);

/// The distance from one rank's memory to the next: room for the longest. Throws
/// std::invalid_argument, naming the ranks, where they ask for different sizes or for more than
/// there are addresses. All ranks have the same descriptors, so all compute the same or all throw.
std::size_t agreed_stride(const std::vector<RangeDescriptor>& descriptors);

}  // namespace symm
