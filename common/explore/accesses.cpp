// Accesses, as instrumentation.cpp reports them.

#include <algorithm>
#include <stdexcept>

#include "common/explore/exploration.hpp"

namespace symm::explore {
namespace {

/// More steps than any execution that ends. A loop that polls without a Waiter never lets another
/// thread run, so nothing else would end it.
constexpr std::size_t kMostSteps = 100'000;

}  // namespace

long Exploration::log(LoggedStep step) {
    if (log_.size() >= kMostSteps) {
        fail(fmt::format("{} is in an endless loop: {} steps in one execution", name_of(*current_),
                         kMostSteps));
    }
    step.thread = number_of(*current_);
    step.frame = current_->frame;
    log_.push_back(step);
    return static_cast<long>(log_.size()) - 1;
}

void Exploration::check_races(std::uintptr_t address, std::size_t size, AccessKind kind,
                              const char* what, long step) {
    for (std::uintptr_t at = address; at < address + size;) {
        const std::uintptr_t end = std::min(address + size, (at / 8 + 1) * 8);
        const auto race = races_.access(at - reinterpret_cast<std::uintptr_t>(scene_), end - at,
                                        kind, number_of(*current_), current_->mind, step);
        if (race) {
            const Thread& other = threads_[static_cast<std::size_t>(race->thread)];
            const LoggedStep& earlier = log_[static_cast<std::size_t>(race->step)];
            involved_ = {race->step, step};
            fail(fmt::format("data race on {}: {} by {} (step {}), {} by {} (step {})", name_of(at),
                             earlier.what, name_of(other), race->step, what, name_of(*current_),
                             step));
        }
        at = end;
    }
}

void Exploration::plain(void* address, std::size_t size, bool store, void* place) {
    const Inside inside(*this);
    if (trying_) {
        const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
        if (store && !(here <= address && address < poll_frame_)) {
            auto* const bytes = static_cast<char*>(address);
            overwritten_.emplace_back(bytes, std::vector<char>(bytes, bytes + size));
        }
        return;
    }
    if (!holds(address)) {
        return;
    }
    const char* const what = store ? "plain store" : "plain load";
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const long step = log({.what = what, .address = begin, .place = place});
    check_races(begin, size, {store, false}, what, step);
    if (store) {
        memory_.forget(begin, size);
    }
}

bool Exploration::has_other_writer(std::size_t location) {
    for (std::size_t i = 0; i < thread_count_; ++i) {
        if (&threads_[i] != current_ && memory_[location].writers.contains(i)) {
            return true;
        }
    }
    return false;
}

void Exploration::read(std::size_t location, const StoreRecord& store, const AtomicAccess& access,
                       std::memory_order order, long newest) {
    Memory::read(location, store, order, current_->mind);
    current_->last_reads = {&store, current_->last_reads[0]};
    if (!trying_) {
        const long step = log({.what = "load",
                               .order = order,
                               .address = access.address,
                               .value = store.value,
                               .place = access.place,
                               .from = store.step,
                               .newest = newest});
        check_races(access.address, access.size, {false, true}, "load", step);
        current_->reads.push_back(store.id);
    }
}

std::uint64_t Exploration::load(const AtomicAccess& access) {
    std::size_t location = 0;
    bool is_choice = false;
    {
        const Inside inside(*this);
        location = memory_.at(access.address, access.size);
        is_choice = !is_polling() && has_other_writer(location);
    }
    if (is_choice) {  // a wait that ends at once
        std::uint64_t value = 0;
        await(
            [&] {
                value = load(access);
                return true;
            },
            nullptr);
        return value;
    }
    const Inside inside(*this);
    const StoreRecord& newest = *memory_[location].stores.back();
    const StoreRecord& store = is_polling() ? chosen(location, false) : newest;
    read(location, store, access, access.order, &newest != &store ? newest.step : -1);
    return store.value;
}

void Exploration::put(std::size_t location, std::uint64_t value, const AtomicAccess& access,
                      const StoreRecord* behind) {
    const int me = number_of(*current_);
    Location& word = memory_[location];
    if (!word.writers.contains(static_cast<std::size_t>(me))) {
        word.writers.insert(static_cast<std::size_t>(me));
        begin_again_ = true;
    }
    std::size_t before = 0;
    if (behind == nullptr) {
        const auto places = memory_.places(location, current_->mind);
        before = places[search_.choose(places.size())];
    }
    const long step = log({.what = "store",
                           .order = access.order,
                           .address = word.address,
                           .value = value,
                           .place = access.place});
    check_races(word.address, word.size, {true, true}, "store", step);
    memory_.store(location, value, access.order, me, before, behind, current_->mind).step = step;
    search_.stored(location, me, current_->mind.past);
}

void Exploration::store(const AtomicAccess& access, std::uint64_t value) {
    const Inside inside(*this);
    if (is_polling()) {
        throw std::runtime_error("a poll must not store");
    }
    put(memory_.at(access.address, access.size), value, access, nullptr);
}

std::uint64_t Exploration::update(const AtomicAccess& access,
                                  const std::function<std::uint64_t(std::uint64_t)>& change,
                                  std::optional<std::uint64_t> expected,
                                  std::memory_order failure) {
    const Inside inside(*this);
    const NumberSet past = current_->mind.past;
    StoreRecord* old = nullptr;
    const auto succeeds = [&] { return !expected || old->value == *expected; };
    const auto read_old = [&] {
        const Inside inside(*this);
        const std::size_t location = memory_.at(access.address, access.size);
        old = &chosen(location, true, expected);
        if (!trying_) {
            read(location, *old, access, succeeds() ? access.order : failure, -1);
        }
        return true;
    };
    await(read_old, nullptr);
    const std::size_t location = memory_.at(access.address, access.size);
    search_.updated(location, past);
    if (succeeds()) {
        old->updated = true;
        put(location, change(old->value), access, old);
    }
    return old->value;
}

void Exploration::acquire_both() {
    const Inside inside(*this);
    for (const StoreRecord* store : current_->last_reads) {
        current_->mind.now.join(store->released);
    }
}

void Exploration::fence(std::memory_order order) {
    const Inside inside(*this);
    Memory::fence(order, number_of(*current_), current_->mind);
    if (!trying_) {
        log({.what = "fence", .order = order});
    }
}

void Exploration::enter(void* place) {
    const Inside inside(*this);
    current_->frame = &frames_.emplace_back(Frame{place, current_->frame});
}

void Exploration::leave() {
    const Inside inside(*this);
    if (current_->frame != nullptr) {
        current_->frame = current_->frame->caller;
    }
}

}  // namespace symm::explore
