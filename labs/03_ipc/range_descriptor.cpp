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

using Word = std::uint64_t;  // of a message: four for the first members, then one for each segment
constexpr std::size_t kHead = 4;
constexpr std::size_t kMaxSegments = kMaxContribution / sizeof(Word) - kHead;
/// More than any memory has. A sum of kMaxSegments such sizes still fits in 64 bits.
constexpr Word kAddresses = Word{1} << 46;

}  // namespace

std::uint64_t RangeDescriptor::total() const {
    return std::accumulate(segments.begin(), segments.end(), Word{0});
}

std::vector<std::byte> pack(const RangeDescriptor& descriptor) {
    if (descriptor.segments.size() > kMaxSegments) {
        throw std::length_error(fmt::format("the memory has {} segments, and {} can be shared",
                                            descriptor.segments.size(), kMaxSegments));
    }
    std::vector<Word> words{descriptor.bytes, descriptor.granularity,
                            static_cast<Word>(descriptor.device), descriptor.kinds};
    words.insert(words.end(), descriptor.segments.begin(), descriptor.segments.end());
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

RangeDescriptor unpack_range_descriptor(std::span<const std::byte> bytes) {
    std::vector<Word> words(bytes.size() / sizeof(Word));
    if (words.size() <= kHead || bytes.size() % sizeof(Word) != 0) {
        throw std::runtime_error(fmt::format("{} bytes are no range descriptor", bytes.size()));
    }
    std::memcpy(words.data(), bytes.data(), bytes.size());
    RangeDescriptor descriptor{words[0], words[1], static_cast<std::int64_t>(words[2]), words[3],
                               std::vector<Word>(words.begin() + kHead, words.end())};
    const bool impossible = std::any_of(descriptor.segments.begin(), descriptor.segments.end(),
                                        [](Word size) { return size == 0 || size > kAddresses; });
    if (impossible || descriptor.segments.size() > kMaxSegments ||
        !std::has_single_bit(descriptor.granularity)) {
        throw std::runtime_error("a range descriptor with impossible sizes");
    }
    return descriptor;
}

std::size_t agreed_stride(const std::vector<RangeDescriptor>& descriptors) {
    Word unit = 1;
    Word longest = 0;
    for (std::size_t rank = 0; rank < descriptors.size(); ++rank) {
        if (descriptors[rank].bytes != descriptors[0].bytes) {
            throw std::invalid_argument(fmt::format(
                "rank {} asks for {} bytes and rank 0 for {}: all ranks of a symmetric range must "
                "ask for the same",
                rank, descriptors[rank].bytes, descriptors[0].bytes));
        }
        unit = std::max(unit, descriptors[rank].granularity);  // powers of two: a multiple of all
        longest = std::max(longest, descriptors[rank].total());
    }
    if (std::max(unit, longest) <= kAddresses) {  // more could overflow when it is rounded up
        const std::size_t stride = round_up(longest, unit);
        if (stride <= kAddresses / descriptors.size()) {
            return stride;
        }
    }
    throw std::invalid_argument(
        fmt::format("{} ranks with {} bytes each do not fit in the address space",
                    descriptors.size(), longest));
}

}  // namespace symm
