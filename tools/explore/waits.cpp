#include "tools/explore/waits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace symm::explore {

using simt::Awaited;

// An execution that failed may have left anything here.
void Waits::clear() {
    making_ = nullptr;
    trying_ = any_spins_ = false;
    assumed_ = nullptr;
    overwritten_.clear();
}

void Waits::refuse_in_poll(const Thread& thread, const char* what) {
    if (is_polling()) {
        log_.fail(fmt::format("{} makes {} in the poll of a wait, which may only load",
                              thread.name(), what));
    }
}

Awaited Waits::await(Thread& thread, const std::function<bool()>& poll,
                     const std::uint32_t* gave_up) {
    refuse_in_poll(thread, "another wait");
    thread.wait = {&poll, options_.may_give_up ? gave_up : nullptr};
    thread.suspend(ThreadState::kWaits);
    return thread.wait.how;
}

const std::vector<ThreadMove>& Waits::moves_of(Thread& thread) {
    const PendingWait& wait = thread.wait;
    const auto is_stale = [&](const PendingWait::Polled& polled) {
        return memory_.version_of(polled.location) != polled.version;
    };
    if (!wait.tried || std::ranges::any_of(wait.polled, is_stale)) {
        add_moves(thread);
    }
    return wait.moves;
}

bool Waits::call_poll(Thread& thread) {
    read_.clear();
    scene_.bring(thread.statics);
    poll_frame_ = __builtin_frame_address(0);
    return (*thread.wait.poll)();
}

// Calls it as if for the first time, and undoes what it does.
bool Waits::try_poll(Thread& thread) {
    before_ = thread.view;
    trying_ = true;
    const bool ended = call_poll(thread);
    trying_ = false;
    for (auto change = overwritten_.rbegin(); change != overwritten_.rend(); ++change) {
        std::memcpy(change->first, change->second.data(), change->second.size());
    }
    overwritten_.clear();
    std::swap(thread.view, before_);
    return ended;
}

bool Waits::is_of_poll(std::uintptr_t address) const {
    return address >= reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) &&
           address < reinterpret_cast<std::uintptr_t>(poll_frame_);
}

void Waits::keep(void* address, std::size_t size) {
    if (!is_of_poll(reinterpret_cast<std::uintptr_t>(address))) {
        auto* const bytes = static_cast<char*>(address);
        overwritten_.emplace_back(bytes, std::vector<char>(bytes, bytes + size));
    }
}

// Tries the poll with all combinations of values that its loads may return.
void Waits::add_moves(Thread& thread) {
    PendingWait& wait = thread.wait;
    wait.moves.clear();
    wait.polled.clear();
    wait.tried = true;
    digits_.clear();
    const auto add = [&](Awaited how, bool misses) {
        wait.moves.push_back({thread.index, how, misses, read_});
    };
    std::optional<std::vector<std::uint64_t>> newest_fails;
    for (bool newest = true; newest || !digits_.empty(); newest = false) {
        if (try_poll(thread)) {
            add(Awaited::kTrue, false);
        } else if (newest) {
            newest_fails = read_;
        }
        digits_.resize(read_.size());
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
        polled.version = memory_.version_of(polled.location);
    }
}

void Waits::make(Thread& thread, const ThreadMove& move) {
    PendingWait& wait = thread.wait;
    making_ = &move;
    const std::size_t number = search_.moved(thread.index);
    conditions_.clear();
    if (options_.record && move.how == Awaited::kTrue) {
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
        read_.clear();
        const std::size_t flag = memory_.at(reinterpret_cast<std::uintptr_t>(wait.gave_up), 4);
        Memory::read(flag, read(thread, flag).store, std::memory_order_relaxed, thread.view);
    }
    making_ = nullptr;
    search_.depends(number, thread.view.past);
    thread.view.past.insert(number);
    wait.tried = false;
    if (move.misses || move.how == Awaited::kTimeIsOver) {
        log_.add(thread, {move.misses ? "polls too late" : "gives up"});
    }
    if (move.misses) {  // it polls again
        return;
    }
    wait.how = move.how;
    thread.gave_up |= move.how != Awaited::kTrue;
    thread.state = ThreadState::kReady;
}

Read Waits::read(Thread& thread, std::size_t location, bool for_update,
                 std::optional<std::uint64_t> expected) {
    std::vector<StoreRecord*> stores = memory_.readable(location, thread.view);
    if (for_update) {
        std::erase_if(stores, [&](const StoreRecord* store) {
            return store->updated && (!expected || store->value == *expected);
        });
    }
    const std::size_t load = read_.size();
    if (trying_) {
        if (load == digits_.size()) {
            digits_.push_back({0, stores.size()});
        }
        StoreRecord& store = *stores.at(digits_[load].taken);
        auto& polled = thread.wait.polled;
        if (std::ranges::find(polled, location, &PendingWait::Polled::location) == polled.end()) {
            polled.push_back({location});
        }
        read_.push_back(store.id);
        const bool is_assumed = assumed_ != nullptr && load < assumed_->size();
        return {store, is_assumed ? (*assumed_)[load].value : store.value};
    }
    const auto found = std::ranges::find(stores, making_->reads.at(load), &StoreRecord::id);
    if (found == stores.end()) {
        log_.fail("the scene is not deterministic");
    }
    read_.push_back((*found)->id);
    Read read{**found, (*found)->value};
    for (const StoreRecord* one : stores) {
        read.choices.emplace_back(one->step, one->value);
    }
    if (load < conditions_.size()) {
        read.until = conditions_[load];
    }
    return read;
}

}  // namespace symm::explore
