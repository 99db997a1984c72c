#include "labs/06_allreduce/comparison/measure_table.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace symm {
namespace {

TEST(Tune, FindsTheRowThatTakesTheLeastTime) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const TuningRow row = best_row(2, CallKind::kFloating,
                                   {{1, {2, 3, 4, 9, 9, 20}},
                                    {2, {3, 2.9, 4, 9, 9, 20}},  // noise: one size alone
                                    {4, {3, 4, 5, 9, 9, 20}},
                                    {8, {9, 5, 6, 9, 9, 20}},
                                    {16, {kNever, 9, 12, 10, 11, 20}},
                                    {32, {kNever, kNever, kNever, 20, 20, 19}}});
    EXPECT_EQ(row.up_to, (std::array<std::size_t, 5>{4, 16, 0, 0, 0}));
    EXPECT_EQ(row.algorithm(17), Algorithm::kCopy);
    EXPECT_EQ(best_row(2, CallKind::kInteger, {{1, {1, kNever, kNever, 2, 2, kNever}}})
                  .algorithm(1 << 30),
              Algorithm::kOneShot);
}

}  // namespace
}  // namespace symm
