// The table of environment variables, and the page that shows it.

#include "common/sys/environment.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "common/sys/usage_error.hpp"
#include "common/tests/variable_in_force.hpp"

namespace symm {
namespace {

using ::testing::HasSubstr;

TEST(Environment, IsOnItsPageAsItIsInTheTable) {
    std::ifstream file(SYMM_SOURCE_DIR "/docs/ENVIRONMENT.md");
    const std::string page(std::istreambuf_iterator<char>(file), {});
    std::size_t rows = 0;
    for (std::size_t at = 0; (at = page.find("\n| `SYMM_", at)) != std::string::npos; ++at) {
        ++rows;
    }
    EXPECT_EQ(rows, std::size(env::kVariables)) << "rows of variables that do not exist";
    for (const env::Variable& variable : env::kVariables) {
        EXPECT_THAT(page, HasSubstr(fmt::format(
                              "\n| `{}` | {} | {} | ", variable.name, env::describe(variable),
                              *variable.standard == 0 ? "-" : variable.standard)));
    }
}

TEST(Environment, AnEmptyVariableCountsAsNotSet) {
    for (const env::Variable& variable : env::kVariables) {
        const VariableInForce empty(variable.name, "");
        EXPECT_NO_THROW(require_environment()) << variable.name;
    }
    const VariableInForce devices("SYMM_EMU_DEVICES", "");
    const VariableInForce memory("SYMM_EMU_MEMORY", "");
    const VariableInForce driver("SYMM_DRIVER", "");
    EXPECT_EQ(env::number("SYMM_EMU_DEVICES"), 4);
    EXPECT_EQ(env::bytes("SYMM_EMU_MEMORY"), std::size_t{1} << 30);
    EXPECT_EQ(env::choice("SYMM_DRIVER"), "auto");
}

TEST(Environment, IsReadAsTheTableSays) {
    const VariableInForce devices("SYMM_EMU_DEVICES", "016");
    const VariableInForce memory("SYMM_EMU_MEMORY", "3MiB");
    const VariableInForce driver("SYMM_DRIVER", "native");
    EXPECT_EQ(env::number("SYMM_EMU_DEVICES"), 16);
    EXPECT_EQ(env::bytes("SYMM_EMU_MEMORY"), 3U << 20);
    EXPECT_EQ(env::choice("SYMM_DRIVER"), "native");
}

TEST(Environment, RefusesWhatAVariableMayNotHold) {
    const std::pair<const char*, const char*> settings[] = {
        {"SYMM_DRIVER", "cuda"},       {"SYMM_DRIVER", "auto native"}, {"SYMM_DRIVER", " "},
        {"SYMM_TIMEOUT", "soon"},      {"SYMM_DEBUG", "loud"},         {"SYMM_CUMEM_ENABLE", "2"},
        {"SYMM_EMU_DEVICES", "17"},    {"SYMM_EMU_MEMORY", "0"},       {"SYMM_EMU_MEMORY", "1.5G"},
        {"SYMM_EMU_MEMORY", "65537T"}, {"SYMM_LAUNCHER", "mpirun"},    {"SYMM_EMU_SMS", "0x2"}};
    for (const auto& [name, value] : settings) {
        const VariableInForce setting(name, value);
        EXPECT_THAT(require_environment, ::testing::ThrowsMessage<UsageError>(HasSubstr(fmt::format(
                                             "{}={} is not understood: give ", name, value))));
    }
}

}  // namespace
}  // namespace symm
