// The functions that kernels apply to packs, on the host: they are the same.

#include "labs/05_device_prims/reduction/reduction.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "labs/05_device_prims/reduction/tests/extremes.hpp"

namespace symm {
namespace {

template <class T, std::size_t kCount>
simt::Pack8 pack_of(const std::array<T, kCount>& elements) {
    static_assert(sizeof(elements) == sizeof(simt::Pack8));
    return cuda::std::bit_cast<simt::Pack8>(elements);
}

template <class T>
T first_of(const simt::Pack8& pack) {
    return cuda::std::bit_cast<Elements<T, simt::Pack8>>(pack).at[0];
}

// From 256 on, bfloat16's steps are 2: rounded after each addition, both ones would be lost.
TEST(Reduction, ReducesInFloatAndRoundsOnce) {
    const auto filled = [](float value) {
        const __nv_bfloat16 rounded = __float2bfloat16_rn(value);
        return pack_of(std::array{rounded, rounded, rounded, rounded});
    };
    const simt::Pack8 packs[3] = {filled(256), filled(1), filled(1)};
    const Reduction sum(ReduceOp::kSum, 3);
    EXPECT_EQ(__bfloat162float(first_of<__nv_bfloat16>(sum.reduce<__nv_bfloat16>(packs, 3))), 258);
    const auto two = sum.combine<__nv_bfloat16>(packs[0], packs[1]);
    EXPECT_EQ(__bfloat162float(first_of<__nv_bfloat16>(two)), 256);
    // 258 / 3 = 86; the average of 256 would be another number.
    const Reduction avg(ReduceOp::kAvg, 3);
    EXPECT_EQ(__bfloat162float(first_of<__nv_bfloat16>(avg.reduce<__nv_bfloat16>(packs, 3))), 86);
    // The sum of two is no half, but infinite.
    const __half large = __float2half_rn(40000);
    const simt::Pack8 halves = pack_of(std::array{large, large, large, large});
    const auto average = Reduction(ReduceOp::kAvg, 2).reduce<__half>({halves, halves}, 2);
    EXPECT_EQ(__half2float(first_of<__half>(average)), 40000);
}

TEST(Reduction, TakesOnlyTheFirstPacks) {
    const simt::Pack8 packs[4] = {pack_of(std::array{1, 2}), pack_of(std::array{10, 20}),
                                  pack_of(std::array{100, 200}), pack_of(std::array{1, 1})};
    const auto sum = Reduction(ReduceOp::kSum, 3).reduce<std::uint32_t>(packs, 3);
    EXPECT_EQ(first_of<std::uint32_t>(sum), 111U);
}

// Kernels use unsigned integers only.
TEST(Reduction, KnowsSignedIntegers) {
    const simt::Pack8 packs[2] = {pack_of(std::array{-7, 3}), pack_of(std::array{2, 3})};
    const auto result = [&](ReduceOp op, bool is_signed) {
        return static_cast<std::int32_t>(
            first_of<std::uint32_t>(Reduction(op, 2, is_signed).reduce<std::uint32_t>(packs, 2)));
    };
    EXPECT_EQ(result(ReduceOp::kMin, true), -7);
    EXPECT_EQ(result(ReduceOp::kMin, false), 2);
    EXPECT_EQ(result(ReduceOp::kMax, true), 2);
    EXPECT_EQ(result(ReduceOp::kMax, false), -7);
    EXPECT_EQ(result(ReduceOp::kAvg, true), -2);
    EXPECT_EQ(result(ReduceOp::kAvg, false), std::numeric_limits<std::int32_t>::max() - 2);
    EXPECT_EQ(result(ReduceOp::kProd, true), -14);
}

// All combinations, so in every order.
TEST(Reduction, PrefersNumbersToNansAndKnowsTheSignsOfZeros) {
    constexpr int kRanks = 3;
    for (const DataType type : testing::kFloatingTypes) {
        const testing::Extremes extremes(type, kRanks);
        for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
            std::vector<std::byte> result(extremes.bytes());
            with_kernel_type(type, [&](auto zero) {
                using T = decltype(zero);
                const Reduction reduction(op, kRanks);
                for (std::size_t at = 0; at < result.size(); at += sizeof(simt::Pack8)) {
                    simt::Pack8 packs[kRanks];
                    for (int rank = 0; rank < kRanks; ++rank) {
                        std::memcpy(&packs[rank], &extremes.input(rank)[at], sizeof(simt::Pack8));
                    }
                    const auto all = reduction.reduce<T>(packs, kRanks);
                    std::memcpy(&result[at], &all, sizeof(all));
                }
            });
            EXPECT_EQ(extremes.with_one_nan(result), extremes.output(op))
                << name_of(op) << " of " << name_of(type);
        }
    }
}

}  // namespace
}  // namespace symm
