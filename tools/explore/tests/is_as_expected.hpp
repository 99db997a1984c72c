#pragma once
/// \file
/// What an exploration has found, against what a test expects.

#include <fmt/format.h>

#include <regex>
#include <string>

#include "tools/explore/counterexample.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

/// `expected`: a regular expression, of the counterexample, or of `N executions` where all ran.
inline bool is_as_expected(const std::string& name, const std::string& expected,
                           const Report& report) {
    const std::string text = report.exhausted
                                 ? fmt::format("{} executions", report.executions)
                                 : fmt::format("{}", fmt::join(counterexample(report), "\n"));
    const bool right = std::regex_search(text, std::regex(expected));
    if (!right) {
        fmt::print("{}: expected '{}', not '{}'\n", name, expected, text);
    }
    return right;
}

}  // namespace symm::explore
