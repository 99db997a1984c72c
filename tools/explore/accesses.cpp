// Atomic accesses and fences.

#include "tools/explore/accesses.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace symm::explore {
namespace {

/// A thread that has made this many loads and nothing else may be in a loop that polls, also if
/// none of them was a choice.
constexpr std::size_t kManyIdleLoads = 64;

}  // namespace

void Accesses::clear() {
    for (const auto& [begin, freed] : freed_) {
        std::free(freed.memory);
    }
    freed_.clear();
    races_.clear();
    outside_.clear();
    loaded_.clear();
    never_written_ = {};
    volatile_ = {};
}

// The location of an atomic access, all of which must have its size.
std::size_t Accesses::word(Thread& thread, const AtomicAccess& access, bool loads) {
    if (access.address % access.size != 0) {
        const long step = log_.add(thread, {"access", access});
        log_.fail(fmt::format("an atomic access of {} bytes at {} is not aligned: {}", access.size,
                              log_.name_of(access.address), log_.described(step)),
                  {step});
    }
    require_memory(thread, access, loads);
    if (access.is_static()) {  // a plain store may have changed it
        std::memcpy(reinterpret_cast<void*>(access.address), access.real, access.size);
    }
    const std::size_t number = memory_.at(access.address, access.size);
    const Location* const other = memory_.overlapped(number);
    if (other == nullptr) {
        return number;
    }
    std::vector<long> involved;
    std::string by = "in a poll";
    if (const long earlier = log_.last_atomic(other->address, other->size); earlier >= 0) {
        involved.push_back(earlier);
        by = log_.described(earlier);
    }
    const long step = log_.add(thread, {"access", access});
    involved.push_back(step);
    log_.fail(fmt::format("atomic accesses of two sizes: {} bytes of {}, {}; {} bytes of {}, {}",
                          other->size, log_.name_of(other->address), by, access.size,
                          log_.name_of(access.address), log_.described(step)),
              std::move(involved));
}

void Accesses::read(Thread& thread, std::size_t location, Read read, const Access& access) {
    Memory::read(location, read.store, *access.order, thread.view);
    thread.last_reads = {&read.store, thread.last_reads[0]};
    if (!waits_.is_trying()) {
        const long step = log_.add(thread, {"load", access, read.store.value, read.store.step,
                                            std::move(read.choices), std::move(read.until)});
        check(thread, access, false, step);
        thread.reads.push_back(read.store.id);
    }
}

std::uint64_t Accesses::load_of(Thread& thread, std::size_t location, const Access& access) {
    const auto newest = [&]() -> Read {
        StoreRecord& store = *memory_[location].stores.back();
        return {store, store.value, {{store.step, store.value}}};
    };
    Read found = waits_.is_polling() ? waits_.read(thread, location) : newest();
    const std::uint64_t value = found.value;
    read(thread, location, std::move(found), access);
    return value;
}

void Accesses::split_seq_cst(Thread& thread, AtomicAccess& access, std::memory_order rest) {
    if (access.order == std::memory_order_seq_cst) {
        fence(thread, std::memory_order_seq_cst, access);
        access.order = rest;
    }
}

std::uint64_t Accesses::load(Thread& thread, AtomicAccess access) {
    split_seq_cst(thread, access, std::memory_order_acquire);
    const std::size_t location = word(thread, access, true);
    if (waits_.is_polling()) {
        return load_of(thread, location, access);
    }
    const bool is_choice =
        memory_[location].writers.contains_other_than(static_cast<std::size_t>(thread.index));
    std::vector<std::uint64_t> state;
    if (is_choice || ++thread.idle.count > kManyIdleLoads) {
        state = Waits::state_of(thread, access.frame);
        waits_.spin_if_known(thread, state, location);
    }
    std::uint64_t value = 0;
    if (is_choice) {
        const auto poll = [&] {
            value = load_of(thread, word(thread, access, true), access);
            return true;
        };
        waits_.await(thread, poll, nullptr);
    } else {
        value = load_of(thread, location, access);
    }
    if (!state.empty()) {
        Waits::add_idle_load(thread, std::move(state), location, value);
    }
    return value;
}

void Accesses::put(Thread& thread, std::size_t location, std::uint64_t value,
                   const AtomicAccess& access, const StoreRecord* behind) {
    thread.idle.had_effect();
    NumberSet& writers = memory_[location].writers;
    if (const auto me = static_cast<std::size_t>(thread.index); !writers.contains(me)) {
        writers.insert(me);
        search_.learn();
    }
    std::size_t before = 0;
    if (behind == nullptr) {
        const auto places = memory_.places(location, thread.view);
        before = places[search_.choose(places.size(), log_.trace())];
    }
    const long step = log_.add(thread, {"store", access, value});
    check(thread, access, true, step);
    memory_.store(location, value, *access.order, thread.index, before, behind, thread.view).step =
        step;
    if (access.is_static()) {
        std::memcpy(access.real, reinterpret_cast<void*>(access.address), access.size);
    }
    scene_.stored(access.address, access.size);
    search_.stored(location, thread.index, thread.view.past);
}

void Accesses::store(Thread& thread, AtomicAccess access, std::uint64_t value) {
    waits_.refuse_in_poll(thread, "a store");
    split_seq_cst(thread, access, std::memory_order_release);
    put(thread, word(thread, access, false), value, access, nullptr);
}

std::uint64_t Accesses::update(Thread& thread, AtomicAccess access,
                               const std::function<std::uint64_t(std::uint64_t)>& change,
                               std::optional<std::uint64_t> expected, std::memory_order failure) {
    waits_.refuse_in_poll(thread, "an addition or a swap");
    if (access.order == std::memory_order_seq_cst || failure == std::memory_order_seq_cst) {
        access.order = std::memory_order_seq_cst;
        failure = std::memory_order_acquire;
        split_seq_cst(thread, access, std::memory_order_acq_rel);
    }
    std::vector<std::uint64_t> state;
    if (expected) {
        state = Waits::state_of(thread, access.frame);
        waits_.spin_if_known(thread, state, word(thread, access, true));
    }
    const NumberSet past = thread.view.past;
    StoreRecord* old = nullptr;
    const auto succeeds = [&] { return !expected || old->value == *expected; };
    const auto read_old = [&] {
        const std::size_t location = word(thread, access, true);
        Read found = waits_.read(thread, location, true, expected);
        old = &found.store;
        if (!waits_.is_trying()) {
            Access done = access;
            done.order = succeeds() ? access.order : failure;
            read(thread, location, std::move(found), done);
        }
        return true;
    };
    waits_.await(thread, read_old, nullptr);
    const std::size_t location = word(thread, access, true);
    search_.updated(location, past);
    if (succeeds()) {
        old->updated = true;
        put(thread, location, change(old->value), access, old);
    } else {
        Waits::add_idle_load(thread, std::move(state), location, old->value);
    }
    return old->value;
}

void Accesses::fence(Thread& thread, std::memory_order order, const AtomicAccess& access) {
    Memory::fence(order, thread.index, thread.view);
    if (order == std::memory_order_seq_cst) {
        waits_.refuse_in_poll(thread, "a seq_cst access or fence");
        // These fences have an order, and what comes before one is known after the next, as in PTX:
        // each is an addition to the same word. It is no effect of a loop that polls.
        const IdleLoads idle = thread.idle;
        AtomicAccess of_order = access;
        of_order.address = scene_.first();
        of_order.size = sizeof(std::uint64_t);
        of_order.order = std::memory_order_acq_rel;
        of_order.real = nullptr;
        update(thread, of_order, [](std::uint64_t fences) { return fences + 1; }, {}, {});
        thread.idle = idle;
        Memory::fence(std::memory_order_release, thread.index, thread.view);
    }
    if (!waits_.is_trying()) {
        log_.add(thread, {"fence", {.order = order}});
    }
}

// Each half was loaded relaxed: together they are one load, acquire.
void Accesses::acquire_both(Thread& thread) {
    for (const StoreRecord* store : thread.last_reads) {
        thread.view.now.join(store->released);
    }
    if (!waits_.is_trying()) {
        log_.acquire_halves(thread);
    }
}

void Accesses::volatile_load(Thread& thread, const AtomicAccess& access) {
    const std::uint64_t value = load(thread, access);
    volatile_ = {access};
    std::memcpy(&volatile_.newest, access.real, access.size);
    std::memcpy(access.real, &value, access.size);
}

void Accesses::volatile_store(const AtomicAccess& access) {
    volatile_ = {access, true};
    std::memcpy(&volatile_.newest, access.real, access.size);
}

void Accesses::settle(Thread& thread) {
    const auto last = std::exchange(volatile_, {});
    std::uint64_t value = 0;
    std::memcpy(&value, last.access.real, last.access.size);
    std::memcpy(last.access.real, &last.newest, last.access.size);
    if (last.store) {
        store(thread, last.access, value);
    }
}

}  // namespace symm::explore
