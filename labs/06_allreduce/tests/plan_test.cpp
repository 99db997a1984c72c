#include "labs/06_allreduce/plan.hpp"

#include <gtest/gtest.h>

#include "common/cli/usage_error.hpp"

namespace symm {
namespace {

constexpr DeviceShape kDevice{128, 512};

TEST(Plan, TakesOneShotForSmallAndTwoForLarge) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
        const std::size_t limit = one_shot_preferred(ranks) / 4;
        EXPECT_EQ(plan({DataType::kFloat, limit, ranks, true}, Algorithm::kAuto, kDevice).algorithm,
                  Algorithm::kOneShot);
        EXPECT_EQ(
            plan({DataType::kFloat, limit + 1, ranks, true}, Algorithm::kAuto, kDevice).algorithm,
            Algorithm::kTwoShot);
    }
}

TEST(Plan, FillsNoMoreThanTheDevice) {
    for (const std::size_t count : {1UL, 31UL, 4097UL, 1UL << 16, 1UL << 28}) {
        const Plan chosen = plan({DataType::kBfloat16, count, 8, true}, Algorithm::kAuto, {7, 96});
        EXPECT_GE(chosen.shape.blocks, 1U);
        EXPECT_LE(chosen.shape.blocks, 7U);
        EXPECT_LE(chosen.shape.threads, 96U);
        EXPECT_EQ(chosen.shape.threads % 32, 0U);
    }
}

TEST(Plan, SaysWhatTwoShotsSave) {
    EXPECT_EQ(plan({DataType::kFloat, 1 << 20, 8, true}, Algorithm::kAuto, kDevice).reason,
              "above 32K for 8 ranks: one shot's packets, half flags, carry 8 times the bytes");
}

TEST(Plan, SaysWhatCannotBeDone) {
    EXPECT_THROW(plan({DataType::kFloat, kOneShotLimit, 2, true}, Algorithm::kOneShot, kDevice),
                 std::invalid_argument);
    EXPECT_THROW(plan({DataType::kFloat, 10, 2, false}, Algorithm::kTwoShot, kDevice),
                 std::invalid_argument);
    EXPECT_THROW(plan({DataType::kFloat, kOneShotLimit, 2, false}, Algorithm::kAuto, kDevice),
                 std::invalid_argument);
    EXPECT_EQ(
        plan({DataType::kFloat, kOneShotLimit / 4, 8, false}, Algorithm::kAuto, kDevice).algorithm,
        Algorithm::kOneShot);
}

TEST(Names, AreReadAndRefused) {
    EXPECT_EQ(algorithm("twoshot"), Algorithm::kTwoShot);
    EXPECT_THROW(algorithm("ring"), UsageError);
    EXPECT_EQ(data_type("bf16"), DataType::kBfloat16);
    EXPECT_THROW(data_type("int"), UsageError);
    EXPECT_THROW(reduce_op("max"), UsageError);
}

}  // namespace
}  // namespace symm
