#include "tools/compare/measure_table.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace symm {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The times of the first three algorithms and of the last; those between are slower than all.
TunedSize measured(std::size_t bytes, double first, double second, double third, double last) {
    TunedSize size{bytes, {}};
    size.times.fill(100);
    size.times[0] = first;
    size.times[1] = second;
    size.times[2] = third;
    size.times.back() = last;
    return size;
}

TEST(Tune, FindsTheRowThatTakesTheLeastTime) {
    const TuningRow row =
        best_row(2, CallKind::kFloating,
                 {measured(1, 2, 3, 4, 20), measured(2, 3, 2.9, 4, 20),  // noise: one size alone
                  measured(4, 3, 4, 5, 20), measured(8, 9, 5, 6, 20),
                  measured(16, kNever, 9, 12, 20), measured(32, kNever, kNever, kNever, 19)});
    EXPECT_EQ(row.up_to, (decltype(row.up_to){4, 16}));
    EXPECT_EQ(row.algorithm(17), Algorithm::kCopy);
    EXPECT_EQ(best_row(2, CallKind::kInteger, {measured(1, 1, kNever, kNever, kNever)})
                  .algorithm(1 << 30),
              Algorithm::kOneShot);
}

}  // namespace
}  // namespace symm
