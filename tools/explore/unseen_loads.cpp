// A load that clang does not instrument leaves no trace. So the first execution is also made with
// other bytes in all memory of the scene but that of the access that comes next. A thread that then
// has other values has loaded some of these bytes unseen.

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

/// Later steps of a large scene load what they load: else it would take too long.
constexpr std::size_t kMostHidden = 4 << 20;  // bytes

/// Makes the first execution. `hides`: with other bytes. `expected`: a step that has another value
/// fails.
std::pair<Report, FirstExecution> make(const Options& options,
                                       const std::function<void(Scene&)>& setup, bool hides,
                                       const FirstExecution* expected = nullptr) {
    Options one = options;
    one.most_executions = 1;
    one.shorten = 0;
    Exploration exploration(one, setup);
    // Where nothing is hidden, the explorer does the same: what it leaves on the threads' stacks
    // may get into a copy of a struct that is not full.
    exploration.memory().begin_hiding(kMostHidden, hides ? 0x2c : 0);
    if (expected != nullptr) {
        exploration.log().expect(expected->values, expected->executions);
    }
    Report report = exploration.explore();
    return {std::move(report), exploration.first()};
}

}  // namespace

FirstExecution hidden_execution(const Options& options, const std::function<void(Scene&)>& setup) {
    return make(options, setup, true).second;
}

std::optional<Report> unseen_load(const Options& options, const std::function<void(Scene&)>& setup,
                                  const FirstExecution& first, const FirstExecution& hidden) {
    const FirstExecution seen = make(options, setup, false).second;
    if (seen.trace != first.trace) {
        refuse_chance();
    }
    // Values may be addresses of the heap, which differ each time: they show nothing.
    if (seen.failed || hidden.is_like(seen) || !make(options, setup, false).second.is_like(seen) ||
        !make(options, setup, true).second.is_like(hidden)) {
        return {};
    }
    Report report = make(options, setup, true, &seen).first;
    return report.failed ? std::optional(std::move(report)) : std::nullopt;
}

}  // namespace symm::explore
