// Text with values in it (common/sys/format.hpp).

#include "common/sys/format.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace symm {
namespace {

TEST(TextOf, HasValuesOfEachKindAsFmtWritesThem) {
    EXPECT_EQ(text_of("{} {} {}", true, 'x', -1), "true x -1");
    EXPECT_EQ(text_of("{} {}", std::numeric_limits<std::int64_t>::min(),
                      std::numeric_limits<std::uint64_t>::max()),
              "-9223372036854775808 18446744073709551615");
    EXPECT_EQ(text_of("{:#x} {:>4} {:02}", 255U, std::uint8_t{7}, short{3}), "0xff    7 03");
    EXPECT_EQ(text_of("{:.3g} {}", 0.12345, 1.5F), "0.123 1.5");
    const char* const pointer = "a text";
    EXPECT_EQ(
        text_of("{}, {} and {}", pointer, std::string("a string"), std::string_view("a view")),
        "a text, a string and a view");
    EXPECT_EQ(text_of("{}", reinterpret_cast<void*>(0x10)), "0x10");
}

TEST(TextOf, HasBracesIfTheyAreDoubled) {
    EXPECT_EQ(text_of("{{{}}} {{}}", 1), "{1} {}");
    EXPECT_EQ(text_of("no value"), "no value");
}

}  // namespace
}  // namespace symm
