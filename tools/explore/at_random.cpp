// Random executions: to find failures that are far away, and shorter executions that fail.

#include <optional>
#include <random>
#include <regex>

#include "tools/explore/exploration.hpp"

namespace symm::explore {

// Whether one of the random executions fails that are made until there are enough.
bool Exploration::fails_at_random(const std::function<bool()>& enough) {
    search_.at_random(true);
    bool failed = false;
    while (!failed && !search_.has_learnt() && !enough()) {
        failed = execute() == End::kFailed;
    }
    search_.at_random(false);
    return failed;
}

// Puts a shorter execution with the same failure into the report, if random ones have it: the same
// text but for the numbers of steps.
void Exploration::shorten(Report& report) {
    const auto kind_of = [](const std::string& why) {
        return std::regex_replace(why, std::regex("step [0-9]+"), "step");
    };
    search_.at_random(true);
    const std::string kind = kind_of(report.why);
    std::size_t length = report.steps.size();
    const auto is_shorter = [&] {
        Report other;
        other.failed = execute() == End::kFailed;
        if (other.failed) {
            log_.report(other, false);
        }
        const bool result = kind_of(other.why) == kind && other.steps.size() < length;
        length = result ? other.steps.size() : length;
        return result;
    };
    std::optional<std::mt19937_64> shortest;  // as it was before that execution
    for (unsigned i = 0; i < options_.shorten; ++i) {
        const std::mt19937_64 before = search_.random();
        if (is_shorter()) {
            shortest = before;
        }
    }
    length = report.steps.size();
    if (shortest) {
        search_.random() = *shortest;
        if (is_shorter()) {  // it may go otherwise, after what was learnt since
            log_.report(report);
        }
    }
}

}  // namespace symm::explore
