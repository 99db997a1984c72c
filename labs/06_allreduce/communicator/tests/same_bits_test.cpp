// The bits of an element depend only on the ranks' values, the type and the operation: not on the
// algorithm, the count, the offset, the alignment, or whether the call is in place.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/tests/sanitized.hpp"
#include "labs/05_device_prims/reduction/tests/extremes.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

constexpr std::size_t kMost = 700;

/// The layout of a floating type.
struct Format {
    DataType type;
    int exponent_bits;
    int fraction_bits;
};
constexpr std::array<Format, 4> kFormats{{{DataType::kHalf, 5, 10},
                                          {DataType::kBfloat16, 8, 7},
                                          {DataType::kFloat, 8, 23},
                                          {DataType::kDouble, 11, 52}}};

/// Random fractions, signs, and exponents from -5 to 5: the rounding of a sum of three depends on
/// the order.
std::vector<std::byte> random_input(const Format& format, int rank) {
    const std::size_t size = size_of(format.type);
    std::vector<std::byte> input(kMost * size);
    std::uint64_t state = static_cast<std::uint64_t>(rank) + 1;
    for (std::size_t i = 0; i < kMost; ++i) {
        state = (state + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
        const std::uint64_t drawn = state ^ (state >> 31);
        const std::uint64_t bias = (std::uint64_t{1} << (format.exponent_bits - 1)) - 1;
        const std::uint64_t exponent = bias - 5 + (drawn >> 53) % 11;
        const std::uint64_t fraction = drawn & ((std::uint64_t{1} << format.fraction_bits) - 1);
        const std::uint64_t bits = drawn >> 63 << (format.exponent_bits + format.fraction_bits) |
                                   exponent << format.fraction_bits | fraction;
        std::memcpy(&input[i * size], &bits, size);
    }
    return input;
}

struct Placement {
    std::size_t first;  ///< Element of the input.
    std::size_t count;
    std::size_t shift;  ///< Where the output begins, in elements.
    bool in_place;
};
constexpr std::array<Placement, 5> kPlacements{{{0, kMost, 0, false},
                                                {0, kMost, 0, true},
                                                {1, 333, 0, false},
                                                {64, 128, 3, false},
                                                {5, kMost - 5, 5, true}}};

class SameBits : public ::testing::TestWithParam<int> {};

TEST_P(SameBits, WhateverTheCall) {
    on_ranks(GetParam(), [](Side& side) {
        const CUdeviceptr in = side.allocate(kMost * sizeof(double));
        const CUdeviceptr out = side.allocate((kMost + 5) * sizeof(double));
        for (const Format& format : kFormats) {
            const std::size_t size = size_of(format.type);
            const std::vector<std::byte> input = random_input(format, side.rank.rank());
            copy_to_device(in, input.data(), input.size());
            for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kAvg}) {
                std::vector<std::byte> expected;  // the first call's result
                for (const Algorithm algorithm : same_bits_algorithms_of(side.rank.size())) {
                    for (const auto& [first, count, shift, in_place] : kPlacements) {
                        const CUdeviceptr to = out + shift * size;
                        const CUdeviceptr from = in_place ? to : in + first * size;
                        std::vector<std::byte> result(count * size);
                        if (in_place) {
                            copy_to_device(to, &input[first * size], result.size());
                        }
                        side.call(from, to, count, {format.type, op}, algorithm);
                        side.synchronize();
                        copy_to_host(result.data(), to, result.size());
                        if (expected.empty()) {
                            expected = result;
                            for (const auto& other :
                                 side.rank.bootstrap().allgather_bytes("result", result)) {
                                EXPECT_EQ(other, result) << "ranks have different bits";
                            }
                        }
                        EXPECT_TRUE(std::equal(
                            result.begin(), result.end(),
                            expected.begin() + static_cast<std::ptrdiff_t>(first * size)))
                            << name_of(algorithm) << " of " << count << " " << name_of(format.type)
                            << ", " << name_of(op) << ", from " << first
                            << (in_place ? ", in place" : "");
                    }
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, SameBits,
                         ::testing::ValuesIn(testing::kSanitized
                                                 ? std::vector{3}
                                                 : std::vector{1, 2, 3, 4, 5, 6, 7, 8}));

TEST(SameBitsOfExtremes, WhateverTheAlgorithm) {
    constexpr int kRanks = 3;
    on_ranks(kRanks, [](Side& side) {
        const CUdeviceptr in = side.allocate(1 << 16);
        const CUdeviceptr out = side.allocate(1 << 16);
        for (const Algorithm algorithm : same_bits_algorithms_of(kRanks)) {
            SCOPED_TRACE(name_of(algorithm));
            testing::expect_extremes(side.rank.rank(), kRanks, in, out,
                                     [&](std::size_t count, DataType type, ReduceOp op) {
                                         side.call(in, out, count, {type, op}, algorithm);
                                         side.synchronize();
                                     });
        }
    });
}

}  // namespace
}  // namespace symm
