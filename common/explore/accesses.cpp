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

void Exploration::check_races(const Access& access, bool store, long step) {
    const std::uintptr_t end = access.address + access.size;
    for (std::uintptr_t at = access.address, next = 0; at < end; at = next) {
        next = std::min(end, (at / 8 + 1) * 8);
        const auto race = races_.access(at - reinterpret_cast<std::uintptr_t>(scene_), next - at,
                                        {store, access.order.has_value()}, number_of(*current_),
                                        current_->mind, step);
        if (race) {
            const auto described = [&](long number) {
                const LoggedStep& one = log_[static_cast<std::size_t>(number)];
                return fmt::format("{} by {} (step {})", one.what,
                                   name_of(threads_[static_cast<std::size_t>(one.thread)]), number);
            };
            involved_ = {race->step, step};
            fail(fmt::format("data race on {}: {}, {}", name_of(at), described(race->step),
                             described(step)));
        }
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
    const Access access{reinterpret_cast<std::uintptr_t>(address), size, place};
    check_races(access, store, log({store ? "plain store" : "plain load", access}));
    if (store) {
        memory_.forget(access.address, size);
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

void Exploration::read(std::size_t location, const StoreRecord& store, const Access& access,
                       long newest) {
    Memory::read(location, store, *access.order, current_->mind);
    current_->last_reads = {&store, current_->last_reads[0]};
    if (!trying_) {
        check_races(access, false, log({"load", access, store.value, store.step, newest}));
        current_->reads.push_back(store.id);
    }
}

std::uint64_t Exploration::load(const Access& access) {
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
    read(location, store, access, &newest != &store ? newest.step : -1);
    return store.value;
}

void Exploration::put(std::size_t location, std::uint64_t value, const Access& access,
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
    const long step = log({"store", access, value});
    check_races(access, true, step);
    memory_.store(location, value, *access.order, me, before, behind, current_->mind).step = step;
    search_.stored(location, me, current_->mind.past);
}

void Exploration::store(const Access& access, std::uint64_t value) {
    const Inside inside(*this);
    if (is_polling()) {
        throw std::runtime_error("a poll must not store");
    }
    put(memory_.at(access.address, access.size), value, access, nullptr);
}

std::uint64_t Exploration::update(const Access& access,
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
            Access done = access;
            done.order = succeeds() ? access.order : failure;
            read(location, *old, done, -1);
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
        log({"fence", {.order = order}});
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
