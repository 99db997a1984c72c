// Waits: all ways in which one may end, and the one that is taken.

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "common/explore/exploration.hpp"

namespace symm::explore {

using simt::Awaited;

Awaited Exploration::await(const std::function<bool()>& poll, const std::uint32_t* gave_up) {
    const Inside inside(*this);
    if (is_polling()) {
        fail_in_poll("another wait");
    }
    current_->wait = {&poll, options_.may_give_up ? gave_up : nullptr};
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

void Exploration::undo() {
    for (auto change = overwritten_.rbegin(); change != overwritten_.rend(); ++change) {
        std::memcpy(change->first, change->second.data(), change->second.size());
    }
    overwritten_.clear();
}

// Calls the poll with all combinations of values that its loads may return, each time as if for the
// first time.
void Exploration::add_moves(Thread& thread) {
    PendingWait& wait = thread.wait;
    wait.moves.clear();
    wait.polled.clear();
    wait.tried = true;
    digits_.clear();
    counts_.clear();
    const Mind mind = thread.mind;
    const auto add = [&](Awaited how, bool misses) {
        wait.moves.push_back({number_of(thread), how, misses, read_});
    };
    std::optional<std::vector<std::uint64_t>> newest_fails;
    trying_ = true;
    for (bool newest = true; newest || !digits_.empty(); newest = false) {
        if (call_poll(thread)) {
            add(Awaited::kTrue, false);
        } else if (newest) {
            newest_fails = read_;
        }
        undo();
        thread.mind = mind;
        digits_.resize(loads_);
        counts_.resize(loads_);
        while (!digits_.empty() && ++digits_.back() == counts_.back()) {
            digits_.pop_back();
            counts_.pop_back();
        }
    }
    trying_ = false;
    if (!wait.moves.empty() && newest_fails) {
        read_ = *newest_fails;
        add(Awaited::kTrue, true);
    }
    if (wait.gave_up != nullptr) {
        read_.clear();
        add(Awaited::kTimeIsOver, false);
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        wait.polled.push_back({flag});
        for (const StoreRecord* store : memory_.readable(flag, thread.mind)) {
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

bool Exploration::is_stale(const Thread& thread) {
    return !thread.wait.tried || std::ranges::any_of(thread.wait.polled, [&](const auto& polled) {
        return version_of(polled.location) != polled.version;
    });
}

void Exploration::make(Thread& thread, const ThreadMove& move) {
    PendingWait& wait = thread.wait;
    making_ = &move;
    const std::size_t number = search_.moved(number_of(thread));
    if (move.how == Awaited::kTrue) {
        if (call_poll(thread) == move.misses) {
            throw std::runtime_error("a poll ended differently from when it was tried");
        }
    } else if (move.how == Awaited::kAnother) {
        current_ = &thread;
        read_.clear();
        loads_ = 0;
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        Memory::read(flag, chosen(flag, false), std::memory_order_relaxed, thread.mind);
        current_ = nullptr;
    }
    making_ = nullptr;
    search_.depends(number, thread.mind.past);
    thread.mind.past.insert(number);
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
    std::vector<StoreRecord*> stores = memory_.readable(location, current_->mind);
    if (for_update) {
        std::erase_if(stores, [&](const StoreRecord* store) {
            return store->updated && (!expected || store->value == *expected);
        });
    }
    StoreRecord* store = nullptr;
    if (trying_) {
        if (loads_ == digits_.size()) {
            digits_.push_back(0);
            counts_.push_back(stores.size());
        }
        store = stores.at(digits_[loads_]);
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
    std::string text = "no thread can go on:";
    for (std::size_t i = 0; i < thread_count_; ++i) {
        const Thread& thread = threads_[i];
        if (thread.state == ThreadState::kAtBarrier) {
            text += fmt::format(" {} waits at a barrier;", name_of(thread));
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
        }
    }
    text.pop_back();
    return text;
}

}  // namespace symm::explore
