#include "labs/03_ipc/range_descriptor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "common/bootstrap/bootstrap.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {
namespace {

// The part of an offer that has one length.
struct Head {
    std::uint64_t bytes;
    std::uint64_t unit;
    std::int64_t device;
    std::uint64_t kinds;
};

constexpr std::size_t kWord = sizeof(std::uint64_t);
/// More than any memory has. A sum of kMaxSegments such sizes still fits in 64 bits.
constexpr std::uint64_t kAddresses = std::uint64_t{1} << 46;
constexpr std::size_t kMaxSegments = (kMaxContribution - sizeof(Head)) / kWord;

}  // namespace

std::uint64_t RangeDescriptor::total() const {
    return std::accumulate(segments.begin(), segments.end(), std::uint64_t{0});
}

std::vector<std::byte> pack(const RangeDescriptor& offer) {
    if (offer.segments.size() > kMaxSegments) {
        throw std::length_error(fmt::format("the memory has {} segments, and {} can be shared",
                                            offer.segments.size(), kMaxSegments));
    }
    const Head head{offer.bytes, offer.unit, offer.device, offer.kinds};
    std::vector<std::byte> bytes(sizeof(head) + offer.segments.size() * kWord);
    std::memcpy(bytes.data(), &head, sizeof(head));
    std::copy_n(std::as_bytes(std::span(offer.segments)).begin(), offer.segments.size() * kWord,
                bytes.begin() + sizeof(head));
    return bytes;
}

RangeDescriptor unpack_range_descriptor(std::span<const std::byte> bytes) {
    Head head{};
    if (bytes.size() <= sizeof(head) || (bytes.size() - sizeof(head)) % kWord != 0) {
        throw std::runtime_error(
            fmt::format("{} bytes are no offer for a symmetric range", bytes.size()));
    }
    std::memcpy(&head, bytes.data(), sizeof(head));
    RangeDescriptor offer{head.bytes, head.unit, head.device, head.kinds, {}};
    offer.segments.resize((bytes.size() - sizeof(head)) / kWord);
    std::memcpy(offer.segments.data(), bytes.data() + sizeof(head), bytes.size() - sizeof(head));
    const bool impossible =
        std::any_of(offer.segments.begin(), offer.segments.end(),
                    [](std::uint64_t segment) { return segment == 0 || segment > kAddresses; });
    if (impossible || offer.segments.size() > kMaxSegments || !std::has_single_bit(head.unit)) {
        throw std::runtime_error(
            "an offer for a symmetric range with impossible sizes: not one of this program's");
    }
    return offer;
}

std::size_t agreed_stride(const std::vector<RangeDescriptor>& offers) {
    std::uint64_t unit = 1;
    std::uint64_t longest = 0;
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
        if (offers[rank].bytes != offers[0].bytes) {
            throw std::invalid_argument(fmt::format(
                "rank {} asks for {} bytes and rank 0 for {}: a symmetric range has the same of "
                "every rank",
                rank, offers[rank].bytes, offers[0].bytes));
        }
        // Powers of two: the largest is a multiple of all.
        unit = std::max(unit, offers[rank].unit);
        longest = std::max(longest, offers[rank].total());
    }
    if (std::max(unit, longest) <= kAddresses) {  // more could wrap when it is rounded up
        const std::size_t stride = round_up(longest, unit);
        if (stride <= kAddresses / offers.size()) {
            return stride;
        }
    }
    throw std::invalid_argument(fmt::format(
        "{} ranks with {} bytes each do not fit in the address space", offers.size(), longest));
}

}  // namespace symm
