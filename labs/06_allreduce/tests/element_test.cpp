#include "labs/06_allreduce/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "labs/06_allreduce/one_shot.hpp"

namespace symm {
namespace {

TEST(Bfloat16, RoundsToTheNearestTiesToEven) {
    const auto round_trip = [](float value) {
        return Bfloat16::to_float(Bfloat16::from_float(value));
    };
    EXPECT_EQ(round_trip(1.0F), 1.0F);
    EXPECT_EQ(round_trip(1.0F + 0x1p-8F), 1.0F);              // a tie: down to even
    EXPECT_EQ(round_trip(1.0F + 0x1.8p-7F), 1.0F + 0x1p-6F);  // a tie: up to even
    EXPECT_EQ(round_trip(1.0F + 0x1.2p-8F), 1.0F + 0x1p-7F);
    EXPECT_EQ(round_trip(-3.140625F), -3.140625F);
    EXPECT_EQ(round_trip(std::numeric_limits<float>::infinity()),
              std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(round_trip(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Bfloat16, PacksTheFirstElementIntoTheLowerHalf) {
    const float in[2] = {1.5F, -2.0F};
    const std::uint32_t word = Bfloat16::pack(in);
    EXPECT_EQ(word & 0xffffU, Bfloat16::from_float(1.5F));
    float out[2];
    Bfloat16::unpack(word, out);
    EXPECT_EQ(out[0], 1.5F);
    EXPECT_EQ(out[1], -2.0F);
}

TEST(Sums, AddInFloatAndRoundOnce) {
    // 256 + 1 + 1: in bfloat16 steps of 2 there, so rounding after each addition would lose both
    // ones.
    const std::uint32_t big[1] = {std::uint32_t{Bfloat16::from_float(256)}};
    const std::uint32_t one[1] = {std::uint32_t{Bfloat16::from_float(1)}};
    Sums<Bfloat16, 1> sums(big);
    sums.add(one);
    sums.add(one);
    std::uint32_t result[1];
    sums.store(result);
    EXPECT_EQ(Bfloat16::to_float(static_cast<std::uint16_t>(result[0])), 258.0F);
}

TEST(NextCall, IsNeverZeroAndAlternatesBanksThroughTheWrap) {
    std::uint32_t call = 0xfffffffcU;
    for (int i = 0; i < 10; ++i) {
        const std::uint32_t next = next_epoch(call);
        EXPECT_NE(next, 0U);
        EXPECT_NE(next % 2, call % 2) << call;
        call = next;
    }
}

}  // namespace
}  // namespace symm
