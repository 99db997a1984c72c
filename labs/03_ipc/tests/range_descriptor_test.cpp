// What a rank tells the others of its memory, before any handle is sent.

#include "labs/03_ipc/range_descriptor.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace symm {
namespace {

TEST(RangeDescriptor, ArrivesAsItWasSentOrNotAtAll) {
    const RangeDescriptor sent{5000, 2 << 20, 3, 1, {2 << 20, 6 << 20}};
    EXPECT_EQ(sent.total(), 8u << 20);
    const auto bytes = pack(sent);
    const RangeDescriptor got = unpack_range_descriptor(bytes);
    EXPECT_EQ(got.bytes, sent.bytes);
    EXPECT_EQ(got.granularity, sent.granularity);
    EXPECT_EQ(got.device, sent.device);
    EXPECT_EQ(got.kinds, sent.kinds);
    EXPECT_EQ(got.segments, sent.segments);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        if (length != bytes.size() - 8) {  // one segment less is a descriptor too
            EXPECT_THROW(unpack_range_descriptor(std::span(bytes).first(length)),
                         std::runtime_error)
                << length;
        }
    }
    // Sizes whose sum would wrap, nothing, and a granularity that is no power of two.
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
    for (const RangeDescriptor& impossible :
         {RangeDescriptor{1, 1, 0, 1, {kHalf, kHalf}}, RangeDescriptor{1, 1, 0, 1, {4, 0}},
          RangeDescriptor{1, 0, 0, 1, {4}}, RangeDescriptor{1, 12, 0, 1, {4}}}) {
        EXPECT_THROW(unpack_range_descriptor(pack(impossible)), std::runtime_error);
    }
    EXPECT_THROW(agreed_stride({{1, kHalf, 0, 1, {4}}}), std::invalid_argument);
    EXPECT_THROW(pack({1, 1, 0, 0, std::vector<std::uint64_t>(5000, 1)}), std::length_error);
}

TEST(RangeDescriptor, TheStrideHasRoomForTheLongest) {
    constexpr std::uint64_t kUnit = 2 << 20;
    const RangeDescriptor one{100, kUnit, 0, 1, {kUnit}};
    const RangeDescriptor two{100, 2 * kUnit, 0, 1, {kUnit, kUnit, kUnit}};
    EXPECT_EQ(agreed_stride({one, one}), kUnit);
    EXPECT_EQ(agreed_stride({one, two}), 4 * kUnit);  // three units, in the larger granularity
    EXPECT_THROW(agreed_stride({one, {101, kUnit, 0, 1, {kUnit}}}), std::invalid_argument);
    EXPECT_THROW(agreed_stride({{1, kUnit, 0, 1, {std::uint64_t{1} << 50}}}),
                 std::invalid_argument);
}

}  // namespace
}  // namespace symm
