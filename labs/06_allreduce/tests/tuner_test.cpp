#include "labs/06_allreduce/tuner.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/cli/bytes.hpp"
#include "common/sys/usage_error.hpp"

namespace symm {
namespace {

constexpr MostShapes kMost{{128, 512}, {264, 512}, true};

Algorithm chosen(std::size_t count, int ranks) {
    return plan_call({DataType::kFloat, count, ranks, true}, Algorithm::kAuto, kMost).algorithm;
}

TEST(Tuner, TakesOneShotForSmallAndTwoForLarge) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
        const std::size_t small = one_shot_preferred(DataType::kFloat, ranks) / 4;
        EXPECT_EQ(chosen(small, ranks), Algorithm::kOneShot);
        EXPECT_EQ(chosen(small + 1, ranks), Algorithm::kSentinel);
        const std::size_t middle = sentinel_preferred(ranks) / 4;
        EXPECT_EQ(chosen(middle, ranks), Algorithm::kSentinel);
        EXPECT_EQ(chosen(middle + 1, ranks), Algorithm::kTwoShot);
    }
}

TEST(Tuner, FillsNoMoreThanTheDevice) {
    constexpr LaunchShape kFew{7, 96};
    for (const std::size_t count : {1UL, 31UL, 4097UL, 1UL << 15, 1UL << 16, 1UL << 28}) {
        const CallPlan plan =
            plan_call({DataType::kBfloat16, count, 8, true}, Algorithm::kAuto, {kFew, kFew, true});
        EXPECT_GE(plan.shape.blocks, 1U);
        EXPECT_LE(plan.shape.blocks, 7U);
        EXPECT_LE(plan.shape.threads, 96U);
        EXPECT_EQ(plan.shape.threads % 32, 0U);
    }
}

TEST(Tuner, SaysWhatTwoShotsSave) {
    const CallPlan large = plan_call({DataType::kFloat, 1 << 20, 8, true}, Algorithm::kAuto, kMost);
    EXPECT_EQ(describe(large.reason, DataType::kFloat, 8),
              fmt::format("above {}: one shot would send 4 times as many bytes",
                          format_bytes(sentinel_preferred(8))));
}

TEST(Tuner, SaysWhatCannotBeDone) {
    EXPECT_THROW(plan_call({DataType::kFloat, 10, 2, false}, Algorithm::kTwoShot, kMost),
                 std::invalid_argument);
    EXPECT_THROW(plan_call({DataType::kInt32, 10, 2, true}, Algorithm::kSentinel, kMost),
                 std::invalid_argument);
    MostShapes shared = kMost;
    shared.copy_engine = false;
    EXPECT_THROW(plan_call({DataType::kFloat, 10, 2, true}, Algorithm::kCopy, shared),
                 std::invalid_argument);
    const CallSize largest{DataType::kFloat, two_shot_preferred(2), 2, true};
    EXPECT_EQ(plan_call(largest, Algorithm::kAuto, kMost).algorithm, Algorithm::kCopy);
    EXPECT_EQ(plan_call(largest, Algorithm::kAuto, shared).algorithm, Algorithm::kTwoShot);
}

// Scratch memory holds one piece; memory in no window can be reduced in one shot only.
TEST(Tuner, CutsWhatScratchMemoryDoesNotHoldIntoPieces) {
    const auto plan = [](DataType type, std::size_t count, Algorithm asked) {
        return plan_call({type, count, 2, false}, asked, kMost);
    };
    const std::size_t most = sentinel_limit(2) / 4;
    const CallPlan floats = plan(DataType::kFloat, 3 * most, Algorithm::kAuto);
    EXPECT_EQ(floats.algorithm, Algorithm::kSentinel);
    EXPECT_EQ(floats.reason, TunerReason::kNoWindow);
    EXPECT_EQ(floats.piece, most);
    const CallPlan bytes = plan(DataType::kUint8, std::size_t{1} << 33, Algorithm::kAuto);
    EXPECT_EQ(bytes.algorithm, Algorithm::kOneShot);
    EXPECT_EQ(bytes.piece, kOneShotLimit);
    EXPECT_EQ(plan(DataType::kFloat, 7, Algorithm::kOneShot).piece, 7U);
}

TEST(Tuner, IsOverruled) {
    TunerOverrides overrides{Algorithm::kTwoShot, 1000, 70};
    const CallSize small{DataType::kFloat, 100, 2, true};
    const CallPlan plan = plan_call(small, Algorithm::kAuto, kMost, overrides);
    EXPECT_EQ(plan.algorithm, Algorithm::kTwoShot);
    EXPECT_EQ(plan.shape.blocks, 128U);
    EXPECT_EQ(plan.shape.threads, 64U);
    EXPECT_EQ(plan_call(small, Algorithm::kSentinel, kMost, overrides).algorithm,
              Algorithm::kSentinel);
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
