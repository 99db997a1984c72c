// Which values would end a wait, and what the threads of a deadlock wait for.

#include <fmt/core.h>

#include <algorithm>

#include "tools/explore/waits.hpp"

namespace symm::explore {

// What makes the next flag of a packet, or the next number.
std::uint64_t Waits::unit_of(const Location& word) const {
    const NamedMemory* const memory = log_.memory_at(word.address);
    return memory != nullptr && memory->shown == Shown::kPacket ? std::uint64_t{1} << 32 : 1;
}

// Whether the poll is true where its loads return these values.
bool Waits::ends_with(Thread& thread, const std::vector<AssumedLoad>& loads) {
    digits_.clear();
    assumed_ = &loads;
    const bool ended = try_poll(thread);
    assumed_ = nullptr;
    return ended;
}

// ReportedStep::until of load i of a wait that ends if its loads return these values. Empty if all
// values end it, or these do not.
std::string Waits::condition(Thread& thread, std::vector<AssumedLoad> loads, std::size_t i) {
    constexpr std::uint64_t kFar = 16;
    const Location& word = *loads[i].word;
    const std::uint64_t one = unit_of(word);
    const std::uint64_t most = ~std::uint64_t{0} >> (64 - 8 * word.size);
    std::uint64_t least = loads[i].value;
    const auto ends = [&](std::uint64_t value) {
        loads[i].value = value & most;
        return ends_with(thread, loads);
    };
    if (!ends(least)) {
        return "";
    }
    const bool more = ends(least + one);
    std::uint64_t steps = 0;
    for (; steps < kFar && ends(least - one); ++steps) {
        least -= one;
    }
    if (steps == kFar && (ends(most) || !ends(most - 1))) {
        return "";
    }
    least = steps == kFar ? most : least & most;
    return (steps == kFar ? "not "
            : more        ? "at least "
                          : "") +
           (one != 1
                ? fmt::format("flag {}", least / one)
                : log_.value_of(word.address, reinterpret_cast<const char*>(&least), word.size));
}

// The loads of a wait that end it by reading these stores.
std::vector<Waits::AssumedLoad> Waits::loads_of(const PendingWait& wait,
                                                const std::vector<std::uint64_t>& reads) {
    std::vector<AssumedLoad> loads;
    for (const std::uint64_t read : reads) {
        for (const auto& one : wait.polled) {
            const Location& word = memory_[one.location];
            const auto found = std::ranges::find(word.stores, read, &StoreRecord::id);
            if (found != word.stores.end()) {
                loads.push_back({&word, (*found)->value});
            }
        }
    }
    return loads;
}

// Logs what a wait that never ends polls. Values that would end it are near the newest ones.
void Waits::log_endless(Thread& thread) {
    constexpr std::uint64_t kNear = 16;
    std::vector<AssumedLoad> loads;
    for (const auto& one : thread.wait.polled) {
        const Location& word = memory_[one.location];
        loads.push_back({&word, word.stores.back()->value - kNear * unit_of(word)});
    }
    for (std::uint64_t i = 0; i < 2 * kNear && !ends_with(thread, loads); ++i) {
        for (AssumedLoad& load : loads) {
            load.value += unit_of(*load.word);
        }
    }
    for (std::size_t i = 0; i < loads.size(); ++i) {
        const Location& word = *loads[i].word;
        const StoreRecord& newest = *word.stores.back();
        std::string until = condition(thread, loads, i);
        log_.add(thread, {"waits",
                          {word.address, word.size, nullptr, std::memory_order_relaxed},
                          newest.value,
                          newest.step,
                          {{newest.step, newest.value}},
                          std::move(until)});
    }
}

void Waits::fail_deadlocked(std::span<Thread> threads) {
    std::vector<long> involved;
    constexpr int kListed = 6;  // of those that wait at barriers: a block has many
    int at_barriers = 0;
    std::string text = "no thread can go on:";
    for (Thread& thread : threads) {
        if (thread.state == ThreadState::kAtBarrier) {
            if (++at_barriers <= kListed) {
                text += fmt::format(" {} waits at a barrier;", thread.name());
            }
        } else if (thread.state == ThreadState::kWaits || thread.state == ThreadState::kSpins) {
            text += fmt::format(" {} polls", thread.name());
            text += thread.wait.polled.empty() ? " nothing," : "";
            for (const auto& polled : thread.wait.polled) {
                const Location& word = memory_[polled.location];
                const auto& stores = word.stores;
                text +=
                    fmt::format(" {} = {:#x}", log_.name_of(word.address), stores.back()->value);
                if (stores.back()->step >= 0) {
                    text += fmt::format(" of step {}", stores.back()->step);
                }
                text += ',';
                for (std::size_t i = stores.size(); i > 0 && i + 2 > stores.size(); --i) {
                    if (const long step = stores[i - 1]->step; step >= 0) {  // the newest two
                        involved.push_back(step);
                    }
                }
            }
            text.back() = ';';
            if (options_.record && thread.state == ThreadState::kWaits) {
                log_endless(thread);
            }
        }
    }
    if (at_barriers > kListed) {
        text += fmt::format(" {} more wait at barriers;", at_barriers - kListed);
    }
    text.pop_back();
    log_.fail(std::move(text), std::move(involved));
}

}  // namespace symm::explore
