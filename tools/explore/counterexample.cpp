#include "tools/explore/counterexample.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

#include "tools/json_string.hpp"

namespace symm::explore {
namespace {

using Steps = std::vector<ReportedStep>;

bool is_sync(const ReportedStep& step) {
    return step.what.ends_with("sync");
}

/// What the step does, as a sentence without its subject.
std::string deed(const ReportedStep& step) {
    const std::string& where = step.location;
    const std::string order =
        (step.order.empty() ? "plain" : step.order) + (step.by_multicast ? " by the switch" : "");
    if (step.what == "fence") {
        return "makes a fence, " + order;
    }
    if (where.empty()) {
        return is_sync(step) || step.what == "kernel end" ? "comes to " + step.what : step.what;
    }
    if (step.what.ends_with("store")) {
        return fmt::format("stores {}into {}, {}{}", step.value.empty() ? "" : step.value + ' ',
                           where, order,
                           step.over < 0 ? "" : fmt::format("; {} is unread", step.over));
    }
    if (step.what == "waits") {
        return fmt::format("waits for {} in {}", step.until, where);
    }
    if (!step.what.ends_with("load")) {
        return fmt::format("accesses {}, {}", where, order);
    }
    if (step.value.empty()) {  // of a global variable
        return fmt::format("loads from {}, {}", where, order);
    }
    const std::string from =
        step.from < 0 ? "the initial value" : fmt::format("of step {}", step.from);
    return fmt::format("loads {} from {}, {}, {}{}", step.value, where, order, from,
                       step.newest < 0 ? "" : fmt::format("; {} is newer", step.newest));
}

std::string name_of(const ReportedStep& step) {
    return fmt::format("r{}.b{}.t{}", step.rank, step.block, step.thread);
}

/// A step's line, which tells `count` steps that do the same.
std::string line_of(const ReportedStep& step, std::size_t number, std::size_t count) {
    std::string line = fmt::format("{:>4} {:<8} {}", number, name_of(step), deed(step));
    if (count > 1) {
        line += fmt::format(" ({} times)", count);
    }
    // The innermost line of source, and the nearest one in another file.
    std::string at;
    for (const std::string& place : step.places) {
        const std::string name = place.substr(place.rfind('/') + 1);
        if (at.empty()) {
            at = name;
        } else if (at.substr(0, at.find(':')) != name.substr(0, name.find(':'))) {
            constexpr std::size_t kColumns = 100;
            at += line.size() + at.size() + name.size() + 6 > kColumns ? "" : ", " + name;
            break;
        }
    }
    return at.empty() ? line : fmt::format("{}  ({})", line, at);
}

bool same_thread(const ReportedStep& a, const ReportedStep& b) {
    return a.rank == b.rank && a.block == b.block && a.thread == b.thread;
}

/// The steps of a failing execution that the counterexample has, each with those that led to it.
class Told {
public:
    explicit Told(const Steps& steps) : steps_(steps) {}

    std::set<long> numbers;
    std::size_t left_out = 0;  ///< Steps that matter less.

    /// Adds a step, and those that its line cites. Not a step: -1.
    void tell(long number) {
        if (number >= 0) {
            numbers.insert({number, step(number).from, step(number).newest, step(number).over});
            numbers.erase(-1);
        }
    }
    /// Whether a step loads what another thread has stored.
    bool is_news(const ReportedStep& one) const {
        return one.what.ends_with("load") &&
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
            other.passed == at.passed && !same_thread(other, at)) {
            const long learnt =
                told.last_before(i, [&](const ReportedStep& s) { return news(s) || is_sync(s); });
            if (learnt >= 0 && news(told.step(learnt))) {
                told.tell(learnt);
            }
        }
    }
}

/// What led a thread to a step: for a store, the loads since its last store before, as their values
/// may be in it; else its last atomic load, or the last sync. Loads of initial values if there are
/// no others.
std::vector<long> reasons(long number, const Told& told) {
    // Also of what the thread has stored itself: perhaps it should not have.
    const auto is_news = [](const ReportedStep& step) {
        return step.from >= 0 || step.newest >= 0;
    };
    std::vector<long> reasons;
    if (told.step(number).what.ends_with("store")) {
        const auto accesses = [](const ReportedStep& step) { return !step.location.empty(); };
        for (long i = told.last_before(number, accesses);
             i >= 0 && told.step(i).what.ends_with("load"); i = told.last_before(i, accesses)) {
            reasons.push_back(i);
        }
    }
    const auto is_old = [&](long i) { return !is_news(told.step(i)); };
    if (!std::ranges::all_of(reasons, is_old)) {
        std::erase_if(reasons, is_old);
    } else {
        const long news = told.last_before(
            number, [&](const ReportedStep& step) { return step.what == "load" && is_news(step); });
        reasons.push_back(news >= 0 ? news : told.last_before(number, is_sync));
    }
    return reasons;
}

// Goes back from each step that the failure is about: to what had led its thread to it, to what
// stored the values that it had read, and so on. Tells the `most` steps that are the fewest such
// links away.
void tell_from_the_end(const std::vector<long>& involved, std::size_t most, Told& told) {
    std::deque<long> open(involved.begin(), involved.end());
    std::set<long> followed = {-1};
    for (; !open.empty(); open.pop_front()) {
        const long number = open.front();
        if (!followed.insert(number).second) {
            continue;
        }
        if (told.numbers.size() < most) {
            told.tell(number);
        }
        open.insert(open.end(), {told.step(number).from, told.step(number).newest});
        std::ranges::copy(reasons(number, told), std::back_inserter(open));
    }
    told.left_out = static_cast<std::size_t>(std::ranges::count_if(
        followed, [&](long number) { return number >= 0 && !told.numbers.contains(number); }));
}

// Between two steps of a thread that are told, the last fence: it did not help.
void tell_fences(Told& told) {
    std::set<long> fences;
    for (const long number : told.numbers) {
        long fence = -1;
        long before = number - 1;
        for (; before >= 0; --before) {
            if (!same_thread(told.step(before), told.step(number))) {
                continue;
            }
            if (told.numbers.contains(before)) {
                break;
            }
            fence = fence < 0 && told.step(before).what == "fence" ? before : fence;
        }
        if (before >= 0 && fence >= 0) {
            fences.insert(fence);
        }
    }
    told.numbers.merge(fences);
}

/// Whether two steps are told in one line: the thread polls again.
bool goes_on(const ReportedStep& step, const ReportedStep& next) {
    return same_thread(step, next) && step.places == next.places && deed(step) == deed(next);
}

/// The steps of a report's counterexample.
Told told_of(const Report& report, std::size_t most) {
    Told told(report.steps);
    if (report.involved.size() == 2 && report.why.starts_with("data race")) {
        tell_race(report.involved.front(), report.involved.back(), told);
    } else {
        tell_from_the_end(report.involved, most, told);
    }
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        if (report.steps[i].what == "polls too late" || report.steps[i].what == "gives up") {
            told.numbers.insert(static_cast<long>(i));
        }
    }
    tell_fences(told);
    return told;
}

std::string json_of(const ReportedStep& step, bool matters) {
    std::vector<std::string> cells;
    for (const auto& [cell, value] : step.cells) {
        cells.push_back(fmt::format(R"({{"cell":{},"value":{}}})", cell, json_string(value)));
    }
    std::vector<std::string> choices;
    for (const auto& [from, value] : step.choices) {
        choices.push_back(fmt::format(R"({{"step":{},"value":{}}})", from, json_string(value)));
    }
    std::vector<std::string> places;
    std::ranges::transform(step.places, std::back_inserter(places), json_string);
    return fmt::format(
        R"({{"rank":{},"block":{},"thread":{},"what":{},"order":{},"by_multicast":{},)"
        R"("location":{},"value":{},"from":{},"newest":{},"over":{},"choices":[{}],"cells":[{}],)"
        R"("places":[{}],"until":{},"matters":{}}})",
        step.rank, step.block, step.thread, json_string(step.what), json_string(step.order),
        step.by_multicast, json_string(step.location), json_string(step.value), step.from,
        step.newest, step.over, fmt::join(choices, ","), fmt::join(cells, ","),
        fmt::join(places, ","), json_string(step.until), matters);
}

}  // namespace

std::vector<std::string> counterexample(const Report& report, std::size_t most) {
    const Told told = told_of(report, most);
    std::vector<std::string> lines;
    if (!told.numbers.empty()) {
        const ReportedStep& first = told.step(*told.numbers.begin());
        lines.push_back(fmt::format("      {} is thread {} of block {} of rank {}", name_of(first),
                                    first.thread, first.block, first.rank));
    }
    if (told.left_out != 0 && !lines.empty()) {
        lines.back() += fmt::format("; {} steps that matter less are left out", told.left_out);
    }
    for (auto at = told.numbers.begin(); at != told.numbers.end();) {
        const ReportedStep& step = told.step(*at);
        const auto next = std::find_if_not(
            at, told.numbers.end(), [&](long other) { return goes_on(step, told.step(other)); });
        const auto count = static_cast<std::size_t>(std::distance(at, next));
        lines.push_back(line_of(step, static_cast<std::size_t>(*at), count));
        at = next;
    }
    lines.push_back(fmt::format("      => {}", report.why));
    return lines;
}

std::string as_json(const Report& report, const std::string& protocol, bool may_give_up,
                    std::size_t most) {
    const Told told = told_of(report, most);
    std::vector<std::string> steps;
    for (const ReportedStep& step : report.steps) {
        const bool matters = told.numbers.contains(static_cast<long>(steps.size()));
        steps.push_back(json_of(step, matters));
    }
    std::vector<std::string> cells;
    for (const Cell& cell : report.cells) {
        cells.push_back(fmt::format(R"({{"name":{},"rank":{},"first":{}}})", json_string(cell.name),
                                    cell.rank, json_string(cell.first)));
    }
    std::vector<std::string> lines;
    if (report.failed) {
        std::ranges::transform(counterexample(report, most), std::back_inserter(lines),
                               json_string);
    }
    return fmt::format(
        R"({{"protocol":{},"may_give_up":{},"threads":{},"executions":{},"over_links":{},)"
        R"("polls_over_links":{},"seconds":{:.3f},"exhausted":{},"failed":{},"why":{},)"
        R"("counterexample":[{}],"involved":[{}],"cells":[{}],"steps":[{}]}})",
        json_string(protocol), may_give_up, report.threads, report.executions, report.over_links,
        report.polls_over_links, report.seconds, report.exhausted, report.failed,
        json_string(report.why), fmt::join(lines, ","), fmt::join(report.involved, ","),
        fmt::join(cells, ","), fmt::join(steps, ","));
}

}  // namespace symm::explore
