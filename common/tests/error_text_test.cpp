// Errors as one line of text for the user.

#include "common/sys/error_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <system_error>

namespace symm {
namespace {

using ::testing::HasSubstr;

TEST(ErrorText, IsOneLineWhateverTheErrorHolds) {
    EXPECT_EQ(one_line("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
    EXPECT_EQ(one_line("größer"), "größer");
    EXPECT_EQ(error_text(std::runtime_error("a\nb")), "a\\nb");
}

TEST(ErrorText, NamesTheLimitThatWasReached) {
    const std::pair<std::errc, const char*> limits[] = {
        {std::errc::too_many_files_open, "ulimit -n"},
        {std::errc::too_many_files_open_in_system, "fs.file-max"},
        {std::errc::resource_unavailable_try_again, "ulimit -u"},
        {std::errc::not_enough_memory, "ulimit -v"}};
    for (const auto& [code, remedy] : limits) {
        EXPECT_THAT(error_text(std::system_error(std::make_error_code(code), "call")),
                    HasSubstr(remedy));
    }
    EXPECT_THAT(error_text(std::bad_alloc()), HasSubstr("ulimit -v"));
    const std::system_error other(std::make_error_code(std::errc::no_space_on_device), "call");
    EXPECT_EQ(error_text(other), other.what());
}

}  // namespace
}  // namespace symm
