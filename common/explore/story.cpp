#include "common/explore/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string_view>

namespace symm::explore {
namespace {

using Steps = std::vector<ReportedStep>;

std::string line_of(const Steps& steps, std::size_t number) {
    const ReportedStep& step = steps[number];
    std::string line = fmt::format("{:>4}  {:<9} {:<13}", number,
                                   fmt::format("r{}.b{}.t{}", step.rank, step.block, step.thread),
                                   step.order.empty() ? step.what : step.what + ' ' + step.order);
    if (step.location.empty()) {
        return line.substr(0, line.find_last_not_of(' ') + 1);
    }
    line += ' ' + step.location;
    if (step.what == "store") {
        line += fmt::format(" := {:#x}", step.value);
    }
    if (step.what == "load") {
        line += fmt::format(" = {:#x}", step.value);
        line += step.from < 0 ? ", the initial value" : fmt::format(", of step {}", step.from);
        if (step.newest >= 0) {
            line += fmt::format("; {} is newer", step.newest);
        }
    }
    if (!step.places.empty()) {
        line += fmt::format("  ({})", step.places.front());
    }
    return line;
}

bool same_thread(const ReportedStep& a, const ReportedStep& b) {
    return a.rank == b.rank && a.block == b.block && a.thread == b.thread;
}
bool is_sync(const ReportedStep& step) {
    return step.what.ends_with("sync");
}

/// The steps of a failing execution that the story tells, each with those that led to it.
class Told {
public:
    explicit Told(const Steps& steps) : steps_(steps) {}

    std::set<long> numbers;

    /// Adds a step, the store that it read, and the newest one if it read an older one. Not a step:
    /// -1.
    void tell(long number) {
        if (number >= 0) {
            numbers.insert({number, step(number).from, step(number).newest});
            numbers.erase(-1);
        }
    }
    /// Whether a step loads what another thread has stored.
    bool is_news(const ReportedStep& one) const {
        return one.what == "load" &&
               (one.newest >= 0 || (one.from >= 0 && !same_thread(one, step(one.from))));
    }
    /// The last step of the thread of step `number`, before that, for which `is_so` is true; or -1.
    template <class Is>
    long last_before(long number, const Is& is_so) const {
        long before = number - 1;
        while (before >= 0 && !(same_thread(step(before), step(number)) && is_so(step(before)))) {
            --before;
        }
        return before;
    }
    const ReportedStep& step(long number) const { return steps_[static_cast<std::size_t>(number)]; }

private:
    const Steps& steps_;
};

// Two accesses that nothing orders: the first thread's next step that could order others' steps,
// and what the second one had learned before, by itself or from its block.
void tell_race(long earlier, long later, Told& told) {
    told.tell(earlier);
    told.tell(later);
    bool synced = false;
    for (long i = earlier + 1; i < later; ++i) {
        const ReportedStep& step = told.step(i);
        if (!same_thread(step, told.step(earlier))) {
            continue;
        }
        if (step.what == "store") {
            told.tell(i);
            break;
        }
        if (is_sync(step) && !synced) {
            synced = true;
            told.tell(i);
        }
    }
    const auto news = [&](const ReportedStep& step) { return told.is_news(step); };
    told.tell(told.last_before(later, news));
    const long sync = told.last_before(later, is_sync);
    if (sync < 0) {
        return;
    }
    told.tell(sync);
    const ReportedStep& at = told.step(sync);
    for (long i = 0; i < later; ++i) {
        const ReportedStep& other = told.step(i);
        if (other.rank == at.rank && other.block == at.block && other.what == at.what &&
            other.value == at.value && !same_thread(other, at)) {
            const long learnt =
                told.last_before(i, [&](const ReportedStep& s) { return news(s) || is_sync(s); });
            if (learnt >= 0 && news(told.step(learnt))) {
                told.tell(learnt);
            }
        }
    }
}

// Goes back from each step that the failure is about: to what its thread had read before, the store
// of that, what that thread had read before, and so on.
void tell_from_the_end(std::vector<long> open, Told& told) {
    // Also what the thread has stored itself: perhaps it should not have.
    const auto news = [](const ReportedStep& step) {
        return step.what == "load" && (step.from >= 0 || step.newest >= 0);
    };
    std::set<long> followed = {-1};
    while (!open.empty()) {
        const long number = open.back();
        open.pop_back();
        if (!followed.insert(number).second) {
            continue;
        }
        told.tell(number);
        const ReportedStep& step = told.step(number);
        open.insert(open.end(), {step.from, step.newest, told.last_before(number, news)});
        // For a plain load: the last plain store to its location.
        for (long i = number; step.what == "plain load" && i-- > 0;) {
            if (told.step(i).location == step.location && told.step(i).what == "plain store") {
                open.push_back(i);
                break;
            }
        }
    }
}

/// The name of the memory, without the place in it.
std::string_view memory_of(const ReportedStep& step) {
    return std::string_view(step.location).substr(0, step.location.find_first_of("+["));
}

/// Whether the second step is the same plain access, by the same thread, of the same memory.
bool goes_on(const ReportedStep& step, const ReportedStep& next) {
    return same_thread(step, next) && step.what.starts_with("plain") && step.what == next.what &&
           memory_of(step) == memory_of(next) && step.places == next.places;
}

/// A JSON string. No text of a report has a control character.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    }
    return result + '"';
}

std::vector<std::size_t> steps_that_matter(const Report& report) {
    Told told(report.steps);
    if (report.involved.size() == 2 && report.why.starts_with("data race")) {
        tell_race(report.involved.front(), report.involved.back(), told);
    } else {
        tell_from_the_end(report.involved, told);
    }
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        if (report.steps[i].what == "polls too late" || report.steps[i].what == "gives up") {
            told.numbers.insert(static_cast<long>(i));
        }
    }
    return {told.numbers.begin(), told.numbers.end()};
}

}  // namespace

std::string story(const Report& report, bool all, std::size_t most) {
    const auto& steps = report.steps;
    std::vector<std::size_t> numbers(all ? steps.size() : 0);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::string text;
    if (!all) {
        numbers = steps_that_matter(report);
        const std::size_t left_out = numbers.size() - std::min(numbers.size(), most);
        for (std::size_t i = 0; i < left_out; ++i) {
            const auto first = std::ranges::find_if(
                numbers, [&](std::size_t number) { return steps[number].what != "gives up"; });
            numbers.erase(first == numbers.end() ? numbers.begin() : first);
        }
        if (left_out != 0) {
            text = fmt::format("      ({} earlier steps that matter are left out)\n", left_out);
        }
    }
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t run = 1;  // steps that are told in one line
        while (all && i + run < numbers.size() && goes_on(steps[i], steps[i + run])) {
            ++run;
        }
        text += line_of(steps, numbers[i]);
        if (run > 1) {
            text += fmt::format(" ... {} ({} steps)", steps[i + run - 1].location, run);
        }
        text += '\n';
        i += run;
    }
    return text + fmt::format("      => {}\n", report.why);
}

std::string as_json(const Report& report, const std::string& protocol, bool may_give_up) {
    std::vector<std::string> steps;
    const std::vector<std::size_t> matter = steps_that_matter(report);
    for (const ReportedStep& step : report.steps) {
        std::vector<std::string> places;
        std::ranges::transform(step.places, std::back_inserter(places), quoted);
        steps.push_back(fmt::format(
            R"({{"rank":{},"block":{},"thread":{},"what":{},"order":{},"location":{},"value":{},)"
            R"("from":{},"newest":{},"places":[{}],"matters":{}}})",
            step.rank, step.block, step.thread, quoted(step.what), quoted(step.order),
            quoted(step.location), step.value, step.from, step.newest, fmt::join(places, ","),
            std::ranges::binary_search(matter, steps.size())));
    }
    return fmt::format(
        R"({{"protocol":{},"may_give_up":{},"threads":{},"executions":{},"over_links":{},)"
        R"("seconds":{:.3f},)"
        R"("exhausted":{},"failed":{},"why":{},"steps":[{}]}})",
        quoted(protocol), may_give_up, report.threads, report.executions, report.over_links,
        report.seconds, report.exhausted, report.failed, quoted(report.why), fmt::join(steps, ","));
}

}  // namespace symm::explore
