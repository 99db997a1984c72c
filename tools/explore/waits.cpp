// Waits: all ways in which one may end, and the one that is taken.

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tools/explore/exploration.hpp"

namespace symm::explore {

using simt::Awaited;

Awaited Exploration::await(const std::function<bool()>& poll, const std::uint32_t* gave_up,
                           bool is_real) {
    const Inside inside(*this);
    if (is_polling()) {
        fail_in_poll("another wait");
    }
    current_->wait = {&poll, options_.may_give_up ? gave_up : nullptr, is_real};
    current_->state = ThreadState::kWaits;
    current_->fiber->suspend();
    return current_->wait.how;
}

bool Exploration::call_poll(Thread& thread) {
    loads_ = 0;
    read_.clear();
    bring_statics(*thread.scene_block);
    current_ = &thread;
    poll_frame_ = __builtin_frame_address(0);
    inside_ = false;
    const bool ended = (*thread.wait.poll)();
    { const Inside settles(*this); }
    inside_ = true;
    current_ = nullptr;
    return ended;
}

// Calls it as if for the first time, and undoes what it does.
bool Exploration::try_poll(Thread& thread) {
    ThreadView view = thread.view;
    trying_ = true;
    const bool ended = call_poll(thread);
    trying_ = false;
    for (auto change = overwritten_.rbegin(); change != overwritten_.rend(); ++change) {
        std::memcpy(change->first, change->second.data(), change->second.size());
    }
    overwritten_.clear();
    thread.view = std::move(view);
    return ended;
}

// Tries the poll with all combinations of values that its loads may return.
void Exploration::add_moves(Thread& thread) {
    PendingWait& wait = thread.wait;
    wait.moves.clear();
    wait.polled.clear();
    wait.tried = true;
    digits_.clear();
    const auto add = [&](Awaited how, bool misses) {
        wait.moves.push_back({number_of(thread), how, misses, read_});
    };
    std::optional<std::vector<std::uint64_t>> newest_fails;
    for (bool newest = true; newest || !digits_.empty(); newest = false) {
        if (try_poll(thread)) {
            add(Awaited::kTrue, false);
        } else if (newest) {
            newest_fails = read_;
        }
        digits_.resize(loads_);
        while (!digits_.empty() && ++digits_.back().taken == digits_.back().count) {
            digits_.pop_back();
        }
    }
    if (!wait.moves.empty() && newest_fails) {
        read_ = *newest_fails;
        add(Awaited::kTrue, true);
    }
    if (wait.gave_up != nullptr) {
        read_.clear();
        add(Awaited::kTimeIsOver, false);
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        wait.polled.push_back({flag});
        for (const StoreRecord* store : memory_.readable(flag, thread.view)) {
            if (store->value != 0) {
                read_ = {store->id};
                add(Awaited::kAnother, false);
            }
        }
    }
    for (auto& polled : wait.polled) {
        polled.version = version_of(polled.location);
    }
}

// Whether the poll is true where its loads return these values.
bool Exploration::ends_with(Thread& thread, const std::vector<AssumedLoad>& loads) {
    digits_.clear();
    assumed_ = &loads;
    const bool ended = try_poll(thread);
    assumed_ = nullptr;
    return ended;
}

// ReportedStep::until of load i of a wait that ends if its loads return these values. Empty if all
// values end it, or these do not.
std::string Exploration::condition(Thread& thread, std::vector<AssumedLoad> loads, std::size_t i) {
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
           (one != 1 ? fmt::format("flag {}", least / one)
                     : value_of(word.address, reinterpret_cast<const char*>(&least), word.size));
}

// The loads of a wait that end it by reading these stores.
std::vector<AssumedLoad> Exploration::loads_of(const PendingWait& wait,
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
void Exploration::log_endless(Thread& thread) {
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
        current_ = &thread;
        log({"waits",
             {word.address, word.size, nullptr, std::memory_order_relaxed},
             newest.value,
             newest.step,
             {{newest.step, newest.value}}});
        log_.back().until = std::move(until);
        current_ = nullptr;
    }
}

bool Exploration::is_stale(const Thread& thread) {
    return !thread.wait.tried || std::ranges::any_of(thread.wait.polled, [&](const auto& polled) {
        return version_of(polled.location) != polled.version;
    });
}

void Exploration::make(Thread& thread, const ThreadMove& move) {
    PendingWait& wait = thread.wait;
    making_ = &move;
    const std::size_t number = search_.moved(number_of(thread));
    conditions_.clear();
    if (options_.record && wait.is_real && move.how == Awaited::kTrue) {
        const auto loads = loads_of(wait, move.misses ? wait.moves.front().reads : move.reads);
        for (std::size_t i = 0; i < loads.size(); ++i) {
            conditions_.push_back(condition(thread, loads, i));
        }
    }
    if (move.how == Awaited::kTrue) {
        if (call_poll(thread) == move.misses) {
            throw std::runtime_error("a poll ended differently from when it was tried");
        }
    } else if (move.how == Awaited::kAnother) {
        current_ = &thread;
        read_.clear();
        loads_ = 0;
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        Memory::read(flag, chosen(flag, false), std::memory_order_relaxed, thread.view);
        current_ = nullptr;
    }
    making_ = nullptr;
    search_.depends(number, thread.view.past);
    thread.view.past.insert(number);
    wait.tried = false;
    if (move.misses || move.how == Awaited::kTimeIsOver) {
        current_ = &thread;
        log({move.misses ? "polls too late" : "gives up"});
        current_ = nullptr;
    }
    if (move.misses) {  // it polls again
        return;
    }
    wait.how = move.how;
    thread.gave_up |= move.how != Awaited::kTrue;
    thread.state = ThreadState::kReady;
}

// The store that this load of a poll reads: the one whose turn it is, or the one that was chosen.
// A store has at most one update; a swap that fails is none.
StoreRecord& Exploration::chosen(std::size_t location, bool for_update,
                                 std::optional<std::uint64_t> expected) {
    std::vector<StoreRecord*> stores = memory_.readable(location, current_->view);
    if (for_update) {
        std::erase_if(stores, [&](const StoreRecord* store) {
            return store->updated && (!expected || store->value == *expected);
        });
    }
    StoreRecord* store = nullptr;
    if (trying_) {
        if (loads_ == digits_.size()) {
            digits_.push_back({0, stores.size()});
        }
        store = stores.at(digits_[loads_].taken);
        auto& polled = current_->wait.polled;
        if (std::ranges::find(polled, location, &PendingWait::Polled::location) == polled.end()) {
            polled.push_back({location});
        }
    } else {
        const auto found = std::ranges::find(stores, making_->reads.at(loads_), &StoreRecord::id);
        if (found == stores.end()) {
            fail("the scene is not deterministic");
        }
        store = *found;
        choices_.clear();
        for (const StoreRecord* one : stores) {
            choices_.emplace_back(one->step, one->value);
        }
    }
    ++loads_;
    read_.push_back(store->id);
    return *store;
}

std::string Exploration::deadlock() {
    constexpr int kListed = 6;  // of those that wait at barriers: a block has many
    int at_barriers = 0;
    std::string text = "no thread can go on:";
    for (std::size_t i = 0; i < thread_count_; ++i) {
        Thread& thread = threads_[i];
        if (thread.state == ThreadState::kAtBarrier) {
            if (++at_barriers <= kListed) {
                text += fmt::format(" {} waits at a barrier;", name_of(thread));
            }
        } else if (thread.state == ThreadState::kWaits || thread.state == ThreadState::kSpins) {
            text += fmt::format(" {} polls", name_of(thread));
            text += thread.wait.polled.empty() ? " nothing," : "";
            for (const auto& polled : thread.wait.polled) {
                const Location& word = memory_[polled.location];
                const auto& stores = word.stores;
                text += fmt::format(" {} = {:#x}", name_of(word.address), stores.back()->value);
                if (stores.back()->step >= 0) {
                    text += fmt::format(" of step {}", stores.back()->step);
                }
                text += ',';
                for (std::size_t i = stores.size(); i > 0 && i + 2 > stores.size(); --i) {
                    if (const long step = stores[i - 1]->step; step >= 0) {  // the newest two
                        involved_.push_back(step);
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
    return text;
}

}  // namespace symm::explore
