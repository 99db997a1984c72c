#pragma once
/// \file
/// What an exploration has found, against what a test expects.

#include <fmt/ranges.h>

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

/// Explores each of `cases` in the scene that `set_up(scene, one)` makes. Returns the status with
/// which the test exits: 0 if all are as expected.
template <class Cases, class SetUp>
int explore_all(const Cases& cases, const SetUp& set_up) {
    int wrong = 0;
    for (const auto& one : cases) {
        const Report report = explore({}, [&](Scene& scene) { set_up(scene, one); });
        wrong += is_as_expected(one.name, one.report, report) ? 0 : 1;
    }
    fmt::print("{} of {} cases are wrong\n", wrong, std::size(cases));
    return wrong == 0 ? 0 : 1;
}

}  // namespace symm::explore
