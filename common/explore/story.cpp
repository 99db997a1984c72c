#include "common/explore/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

namespace symm::explore {
namespace {

bool is_load(const Step& step) {
    return step.accesses && step.what.find("load") != std::string::npos;
}

std::string who(const Step& step) {
    return fmt::format("r{}.b{}.t{}", step.rank, step.block, step.thread);
}

std::string line_of(const std::vector<Step>& steps, std::size_t number) {
    const Step& step = steps[number];
    std::string line = fmt::format("{:>4}  {:<9} {:<13}", number, who(step),
                                   step.order.empty() ? step.what : step.what + ' ' + step.order);
    if (!step.accesses) {
        return line.substr(0, line.find_last_not_of(' ') + 1);
    }
    line += fmt::format(" {}", step.location);
    if (step.what == "load" || step.what == "store") {
        line += fmt::format(" {} {:#x}", is_load(step) ? "=" : ":=", step.value);
    }
    if (step.what == "load") {
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

}  // namespace

namespace {

bool same_thread(const Step& a, const Step& b) {
    return a.rank == b.rank && a.block == b.block && a.thread == b.thread;
}
bool is_sync(const Step& step) {
    return step.what.ends_with("sync");
}

/// The steps of a failing execution that the story tells, each with those that led to it.
class Told {
public:
    explicit Told(const std::vector<Step>& steps) : steps_(steps) {}

    std::set<std::size_t> numbers;

    /// Adds a step, the store that it read, and the newest one if it read an older one.
    void tell(std::size_t number) {
        numbers.insert(number);
        for (const long stored : {steps_[number].from, steps_[number].newest}) {
            if (stored >= 0) {
                numbers.insert(static_cast<std::size_t>(stored));
            }
        }
    }
    /// Whether a step loads what another thread has stored.
    bool is_news(const Step& step) const {
        return step.what == "load" &&
               (step.newest >= 0 ||
                (step.from >= 0 &&
                 !same_thread(step, steps_[static_cast<std::size_t>(step.from)])));
    }
    /// The last step of the thread before its step `number` for which `is_so` is true; or -1.
    template <class Is>
    long last_before(std::size_t number, Is&& is_so) const {
        for (std::size_t i = number; i-- > 0;) {
            if (same_thread(steps_[i], steps_[number]) && is_so(steps_[i])) {
                return static_cast<long>(i);
            }
        }
        return -1;
    }

private:
    const std::vector<Step>& steps_;
};

// Two accesses that nothing orders: the first thread's next step that could order others' steps,
// and what the second one had learned before, by itself or from its block.
void tell_race(const std::vector<Step>& steps, const std::vector<std::size_t>& involved,
               Told& told) {
    const std::size_t earlier = involved.front();
    const std::size_t later = involved.back();
    told.tell(earlier);
    told.tell(later);
    bool synced = false;
    for (std::size_t i = earlier + 1; i < later; ++i) {
        if (same_thread(steps[i], steps[earlier])) {
            if (steps[i].what == "store") {
                told.tell(i);
                break;
            }
            if (is_sync(steps[i]) && !synced) {
                synced = true;
                told.tell(i);
            }
        }
    }
    const auto news = [&](const Step& step) { return told.is_news(step); };
    if (const long learnt = told.last_before(later, news); learnt >= 0) {
        told.tell(static_cast<std::size_t>(learnt));
    }
    const long sync = told.last_before(later, is_sync);
    if (sync < 0) {
        return;
    }
    told.tell(static_cast<std::size_t>(sync));
    const Step& at = steps[static_cast<std::size_t>(sync)];
    for (std::size_t i = 0; i < later; ++i) {
        const Step& other = steps[i];
        if (other.rank == at.rank && other.block == at.block && other.what == at.what &&
            other.value == at.value && !same_thread(other, at)) {
            const long learnt =
                told.last_before(i, [&](const Step& s) { return news(s) || is_sync(s); });
            if (learnt >= 0 && news(steps[static_cast<std::size_t>(learnt)])) {
                told.tell(static_cast<std::size_t>(learnt));
            }
        }
    }
}

// Goes back from each step that the failure is about: to what its thread had read before, the store
// of that, what that thread had read before, and so on.
void tell_from_the_end(const std::vector<Step>& steps, std::vector<std::size_t> open, Told& told) {
    // Also what the thread has stored itself: perhaps it should not have.
    const auto news = [&](const Step& step) {
        return step.what == "load" && (step.from >= 0 || step.newest >= 0);
    };
    std::set<std::size_t> followed;
    while (!open.empty()) {
        const std::size_t number = open.back();
        open.pop_back();
        if (!followed.insert(number).second) {
            continue;
        }
        told.tell(number);
        const Step& step = steps[number];
        for (const long next : {step.from, step.newest, told.last_before(number, news)}) {
            if (next >= 0) {
                open.push_back(static_cast<std::size_t>(next));
            }
        }
        // For a plain load: the last plain store to its location.
        for (std::size_t i = number; step.what == "plain load" && i-- > 0;) {
            if (steps[i].location == step.location && steps[i].what == "plain store") {
                open.push_back(i);
                break;
            }
        }
    }
}

}  // namespace

std::vector<std::size_t> steps_that_matter(const Report& report) {
    Told told(report.steps);
    if (report.involved.size() == 2 && report.why.starts_with("data race")) {
        tell_race(report.steps, report.involved, told);
    } else {
        tell_from_the_end(report.steps, report.involved, told);
    }
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        if (report.steps[i].what == "polls too late" || report.steps[i].what == "gives up") {
            told.numbers.insert(i);
        }
    }
    return {told.numbers.begin(), told.numbers.end()};
}

namespace {

/// The name of the memory, without the place in it.
std::string_view memory_of(const Step& step) {
    return std::string_view(step.location).substr(0, step.location.find_first_of("+["));
}

/// Whether the second step is the same plain access, by the same thread, of the same memory.
bool goes_on(const Step& step, const Step& next) {
    return same_thread(step, next) && step.what.starts_with("plain") && step.what == next.what &&
           memory_of(step) == memory_of(next) && step.places == next.places;
}

}  // namespace

std::string story(const Report& report, bool all, std::size_t most) {
    std::vector<std::size_t> numbers;
    if (all) {
        for (std::size_t i = 0; i < report.steps.size(); ++i) {
            numbers.push_back(i);
        }
    } else {
        numbers = steps_that_matter(report);
    }
    std::size_t left_out = 0;
    for (; !all && numbers.size() > most; ++left_out) {
        const auto first = std::ranges::find_if(
            numbers, [&](std::size_t number) { return report.steps[number].what != "gives up"; });
        numbers.erase(first == numbers.end() ? numbers.begin() : first);
    }
    std::string text;
    if (left_out != 0) {
        text += fmt::format("      ({} earlier steps that matter are left out)\n", left_out);
    }
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t run = 1;  // steps that are told in one line
        while (all && i + run < numbers.size() &&
               goes_on(report.steps[numbers[i]], report.steps[numbers[i + run]])) {
            ++run;
        }
        text += line_of(report.steps, numbers[i]);
        if (run > 1) {
            const std::string& last = report.steps[numbers[i + run - 1]].location;
            text += fmt::format(" ... {} ({} steps)", last, run);
        }
        text += '\n';
        i += run;
    }
    return text + fmt::format("      => {}\n", report.why);
}

namespace {

/// No text of a report has a control character.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    }
    return result + '"';
}

std::string as_json(const Step& step, bool matters) {
    std::vector<std::string> places;
    std::ranges::transform(step.places, std::back_inserter(places), quoted);
    return fmt::format(
        R"({{"rank":{},"block":{},"thread":{},"what":{},"order":{},"location":{},"value":{},)"
        R"("from":{},"newest":{},"places":[{}],"matters":{}}})",
        step.rank, step.block, step.thread, quoted(step.what), quoted(step.order),
        quoted(step.location), step.value, step.from, step.newest, fmt::join(places, ","), matters);
}

}  // namespace

std::string as_json(const Report& report, const std::string& protocol, bool may_give_up) {
    std::vector<std::string> steps;
    const std::vector<std::size_t> matter = steps_that_matter(report);
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        steps.push_back(as_json(report.steps[i], std::ranges::binary_search(matter, i)));
    }
    return fmt::format(
        R"({{"protocol":{},"may_give_up":{},"threads":{},"executions":{},"seconds":{:.3f},)"
        R"("exhausted":{},"failed":{},"why":{},"steps":[{}]}})",
        quoted(protocol), may_give_up, report.threads, report.executions, report.seconds,
        report.exhausted, report.failed, quoted(report.why), fmt::join(steps, ","));
}

}  // namespace symm::explore
