#include "labs/06_allreduce/tuner.hpp"

#include <gtest/gtest.h>

#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

constexpr LaunchShape kMost{128, 512};

TEST(Tuner, TakesOneShotForSmallAndTwoForLarge) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
        const std::size_t limit = one_shot_preferred(ranks) / 4;
        EXPECT_EQ(
            plan_call({DataType::kFloat, limit, ranks, true}, Algorithm::kAuto, kMost).algorithm,
            Algorithm::kOneShot);
        EXPECT_EQ(plan_call({DataType::kFloat, limit + 1, ranks, true}, Algorithm::kAuto, kMost)
                      .algorithm,
                  Algorithm::kTwoShot);
    }
}

TEST(Tuner, FillsNoMoreThanTheDevice) {
    for (const std::size_t count : {1UL, 31UL, 4097UL, 1UL << 16, 1UL << 28}) {
        const CallPlan chosen =
            plan_call({DataType::kBfloat16, count, 8, true}, Algorithm::kAuto, {7, 96});
        EXPECT_GE(chosen.shape.blocks, 1U);
        EXPECT_LE(chosen.shape.blocks, 7U);
        EXPECT_LE(chosen.shape.threads, 96U);
        EXPECT_EQ(chosen.shape.threads % 32, 0U);
    }
}

TEST(Tuner, SaysWhatTwoShotsSave) {
    const CallPlan large = plan_call({DataType::kFloat, 1 << 20, 8, true}, Algorithm::kAuto, kMost);
    EXPECT_EQ(describe(large.reason, 8), "above 32K: one shot would send 8 times as many bytes");
}

TEST(Tuner, SaysWhatCannotBeDone) {
    EXPECT_THROW(plan_call({DataType::kFloat, kOneShotLimit, 2, true}, Algorithm::kOneShot, kMost),
                 std::invalid_argument);
    EXPECT_THROW(plan_call({DataType::kFloat, 10, 2, false}, Algorithm::kTwoShot, kMost),
                 std::invalid_argument);
    EXPECT_THROW(plan_call({DataType::kFloat, kOneShotLimit, 2, false}, Algorithm::kAuto, kMost),
                 std::invalid_argument);
    EXPECT_EQ(plan_call({DataType::kFloat, kOneShotLimit / 4, 8, false}, Algorithm::kAuto, kMost)
                  .algorithm,
              Algorithm::kOneShot);
}

TEST(Names, AreReadAndRefused) {
    EXPECT_EQ(algorithm_named("twoshot"), Algorithm::kTwoShot);
    EXPECT_THROW(algorithm_named("ring"), UsageError);
    EXPECT_EQ(data_type("bf16"), DataType::kBfloat16);
    EXPECT_THROW(data_type("int"), UsageError);
    EXPECT_EQ(reduce_op("max"), ReduceOp::kMax);
    EXPECT_THROW(reduce_op("mean"), UsageError);
}

}  // namespace
}  // namespace symm
