#include "common/explore/story.hpp"

#include <fmt/format.h>

#include <set>

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
        return line;
    }
    line += fmt::format(" {}", step.location);
    if (step.what == "load" || step.what == "store") {
        line += fmt::format(" {} {:#x}", is_load(step) ? "=" : ":=", step.value);
    }
    if (step.what == "load") {
        line += step.from < 0 ? ", as it was at first" : fmt::format(", of step {}", step.from);
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

std::vector<std::size_t> steps_that_matter(const Report& report) {
    const std::vector<Step>& steps = report.steps;
    const auto same_thread = [](const Step& a, const Step& b) {
        return a.rank == b.rank && a.block == b.block && a.thread == b.thread;
    };
    const auto is_news = [&](const Step& step) {  // a load of what another thread has stored
        return step.what == "load" &&
               (step.newest >= 0 ||
                (step.from >= 0 && !same_thread(step, steps[static_cast<std::size_t>(step.from)])));
    };
    const auto is_sync = [](const Step& step) { return step.what.ends_with("sync"); };
    const bool is_race = report.involved.size() == 2 && report.why.starts_with("data race");
    std::set<std::size_t> matter;
    std::vector<std::size_t> open = report.involved;
    while (!open.empty()) {
        const std::size_t number = open.back();
        open.pop_back();
        if (!matter.insert(number).second) {
            continue;
        }
        const Step& step = steps[number];
        for (const long stored : {step.from, step.newest}) {
            if (stored >= 0) {
                open.push_back(static_cast<std::size_t>(stored));
            }
        }
        // What its thread had learnt before; of a race also by its last sync.
        for (std::size_t i = number; i-- > 0;) {
            if (same_thread(steps[i], step) &&
                (is_news(steps[i]) || (is_race && is_sync(steps[i])))) {
                open.push_back(i);
                break;
            }
        }
        // What the others had learnt before they came to the same sync.
        for (std::size_t i = 0; is_sync(step) && i < steps.size(); ++i) {
            const Step& other = steps[i];
            if (other.rank != step.rank || other.block != step.block || other.what != step.what ||
                other.value != step.value || same_thread(other, step)) {
                continue;
            }
            for (std::size_t k = i; k-- > 0 && !is_sync(steps[k]);) {
                if (same_thread(steps[k], other) && is_news(steps[k])) {
                    open.push_back(k);
                    break;
                }
            }
        }
        // A wrong value that was loaded plainly: who stored it?
        for (std::size_t i = number; step.what == "plain load" && i-- > 0;) {
            if (steps[i].location == step.location && steps[i].what == "plain store") {
                open.push_back(i);
                break;
            }
        }
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].what == "polls too late") {
            matter.insert(i);
        }
    }
    return {matter.begin(), matter.end()};
}

std::string story(const Report& report, bool all, std::size_t most) {
    std::vector<std::size_t> numbers;
    if (all) {
        for (std::size_t i = 0; i < report.steps.size(); ++i) {
            numbers.push_back(i);
        }
    } else {
        numbers = steps_that_matter(report);
    }
    const std::size_t left_out = !all && numbers.size() > most ? numbers.size() - most : 0;
    std::string text;
    if (left_out != 0) {
        text += fmt::format("      ({} earlier steps that matter are left out)\n", left_out);
    }
    for (std::size_t i = left_out; i < numbers.size(); ++i) {
        text += line_of(report.steps, numbers[i]) + '\n';
    }
    return text + fmt::format("      => {}\n", report.why);
}

}  // namespace symm::explore
