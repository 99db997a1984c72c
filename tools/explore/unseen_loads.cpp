// A load that clang does not instrument leaves no trace. So the first execution is made once more,
// with other bytes in all memory of the scene but that of the access that comes next. A thread that
// then has other values has loaded some of these bytes unseen.

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

/// Later steps of a large scene load what they load: else it would take too long.
constexpr std::size_t kMostHidden = 4 << 20;  // bytes

struct First {
    Report report;
    std::uint64_t trace;
    std::vector<std::uint64_t> values;
    unsigned executions;

    bool is_like(const First& other) const {
        return report.failed == other.report.failed && values == other.values;
    }
};

}  // namespace

std::uint64_t refuse_unseen_loads(const Options& options, const std::function<void(Scene&)>& setup,
                                  Report& report) {
    Options one = options;
    one.most_executions = 1;
    one.shorten = 0;
    const auto make = [&](bool hides, const First* expected = nullptr) {
        Exploration exploration(one, setup);
        // Where nothing is hidden, the explorer does the same: what it leaves on the threads'
        // stacks may get into a copy of a struct that is not full.
        exploration.memory().begin_hiding(kMostHidden, hides ? 0x2c : 0);
        if (expected != nullptr) {
            exploration.log().expect(expected->values, expected->executions);
        }
        Report made = exploration.explore();
        return First{std::move(made), exploration.first_trace(), exploration.log().values(),
                     exploration.log().executions()};
    };
    const First seen = make(false);
    const First hidden = make(true);
    // Values may be addresses of the heap, which differ each time: they show nothing.
    const bool shows = !seen.report.failed && !hidden.is_like(seen) && make(false).is_like(seen);
    if (shows && make(true).is_like(hidden)) {
        report = make(true, &seen).report;
    }
    return seen.trace;
}

}  // namespace symm::explore
