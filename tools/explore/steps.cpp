// What the log of an execution says, for reports.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "tools/explore/log.hpp"
#include "tools/explore/places.hpp"
#include "tools/explore/schedule.hpp"

namespace symm::explore {
namespace {

/// The last step that stored each byte, so far; -1: none.
class Writers {
public:
    void store(const Access& access, long step, const Thread* thread) {
        for (std::size_t i = 0; i < access.size; ++i) {
            last_[access.address + i] = {step, thread, false};
        }
    }
    void load(const Access& access, const Thread* thread) {
        for (std::size_t i = 0; i < access.size; ++i) {
            if (const auto found = last_.find(access.address + i); found != last_.end()) {
                found->second.is_read |= found->second.thread != thread;
            }
        }
    }
    /// The newest of those of an access; `unread`: that no other thread has read since.
    long newest(const Access& access, bool unread = false) const {
        long newest = -1;
        for (std::size_t i = 0; i < access.size; ++i) {
            const auto found = last_.find(access.address + i);
            if (found != last_.end() && !(unread && found->second.is_read)) {
                newest = std::max(newest, found->second.step);
            }
        }
        return newest;
    }

private:
    struct Last {
        long step;
        const Thread* thread;
        bool is_read;
    };
    std::unordered_map<std::uintptr_t, Last> last_;
};

/// Memory cut where an access begins or ends, and into words of at most eight bytes.
std::set<std::uintptr_t> cuts(const std::vector<LoggedStep>& log) {
    std::set<std::uintptr_t> cuts;
    for (const LoggedStep& step : log) {
        const std::uintptr_t end = step.access.address + step.access.size;
        for (std::uintptr_t at = step.access.address; at < end; at = (at / 8 + 1) * 8) {
            cuts.insert(at);
        }
        cuts.insert(end);
    }
    return cuts;
}

/// The place of a step, and those of its callers. None where it accesses nothing.
std::vector<void*> calls_of(const LoggedStep& step) {
    std::vector<void*> calls;
    if (step.access.address != 0) {
        calls.push_back(step.access.place);
        for (const Frame* frame = step.frame; frame != nullptr; frame = frame->caller) {
            calls.push_back(frame->place);
        }
    }
    return calls;
}

}  // namespace

void Log::report(Report& report, bool with_places) {
    static constexpr std::array kOrders{"relaxed", "consume", "acquire",
                                        "release", "acq_rel", "seq_cst"};
    if (!report.failed) {
        keep_stored();
    }
    report.steps.clear();
    report.cells.clear();
    const std::set<std::uintptr_t> words = cuts(log_);
    std::map<std::uintptr_t, std::size_t> cells;  // their numbers
    Writers all;
    Writers plain;  // a history of atomic stores begins after a plain one
    Places places;
    for (const LoggedStep& logged : log_) {
        const Thread& thread = *logged.thread;
        const auto number = static_cast<long>(report.steps.size());
        report.steps.push_back({.rank = thread.rank,
                                .block = thread.block,
                                .thread = thread.number,
                                .what = logged.what});
        ReportedStep& step = report.steps.back();
        const Access& access = logged.access;
        if (access.order) {
            step.order = kOrders.at(static_cast<std::size_t>(*access.order));
        }
        if (access.address == 0) {
            step.passed = logged.value;
            continue;
        }
        for (void* const address : calls_of(logged)) {
            places[address];
        }
        step.by_multicast = logged.by_multicast;
        step.location = name_of(access.address);
        step.until = logged.until;
        const NamedMemory* const memory = memory_at(access.address);
        step.owner = memory == nullptr ? -1 : memory->rank;
        if (memory == nullptr || step.what == "access") {  // no value of the scene's
            continue;
        }
        const long before = plain.newest(access);
        const auto stored_by = [before](long of) { return of < 0 ? before : of; };
        if (step.what == "plain load") {
            step.from = all.newest(access);
            all.load(access, logged.thread);
        } else if (step.what == "load" || step.what == "waits") {
            step.from = stored_by(logged.from);
            all.load(access, logged.thread);
            for (const auto& [of, value] : logged.choices) {
                step.choices.emplace_back(
                    stored_by(of),
                    value_of(access.address, reinterpret_cast<const char*>(&value), access.size));
            }
            const long newest = step.choices.front().first;
            step.newest = newest == step.from ? -1 : newest;
        } else {
            if (step.what == "plain store" && step.owner >= 0 && step.owner != step.rank) {
                step.over = all.newest(access, true);
            }
            all.store(access, number, logged.thread);
        }
        if (step.what == "plain store") {
            plain.store(access, number, logged.thread);
        }
        const bool is_made =
            !report.failed || step.what != "plain store" || &logged != &log_.back();
        const char* const bytes =
            access.order ? reinterpret_cast<const char*>(&logged.value) : &bytes_[logged.bytes];
        if (is_made) {
            step.value = value_of(access.address, bytes, access.size);
        }
        const std::uintptr_t end = access.address + access.size;
        for (auto at = words.find(access.address); *at != end; ++at) {
            const std::size_t size = *std::next(at) - *at;
            const auto [cell, is_new] = cells.try_emplace(*at, cells.size());
            if (is_new) {
                report.cells.push_back({name_of(*at), step.owner,
                                        value_of(*at, &initial_[*at - memory_.origin()], size)});
            }
            step.cells.emplace_back(
                cell->second,
                is_made ? value_of(*at, bytes + (*at - access.address), size) : std::string());
        }
    }
    if (with_places) {
        look_up(places);
    }
    for (std::size_t i = 0; i < report.steps.size(); ++i) {
        for (void* const address : calls_of(log_[i])) {
            std::ranges::copy(places[address], std::back_inserter(report.steps[i].places));
        }
    }
    if (report.failed) {
        report.why = why_;
        report.involved = involved_;
        if (involved_.empty() && !log_.empty()) {
            report.involved = {static_cast<long>(log_.size()) - 1};
        }
    }
}

}  // namespace symm::explore
