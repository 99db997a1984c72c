// Plain accesses, and what every access is checked for.

#include <algorithm>
#include <iterator>

#include "tools/explore/accesses.hpp"

namespace symm::explore {
namespace {

/// Of memory that is not the scene's, so many bytes at an aligned address are one thing.
constexpr std::uintptr_t kGranule = 4;

/// Whether it is what the threads of a warp or a block exchange in its functions.
bool is_of_block(const Thread& thread, std::uintptr_t address) {
    const auto& values = thread.scene_block->values;
    const auto begin = reinterpret_cast<std::uintptr_t>(values.data());
    return address - begin < values.size() * sizeof(values[0]);
}

/// Calls `use(at, size)` with the access's part of each word of 8 bytes.
template <class Use>
void for_words(const Access& access, const Use& use) {
    const std::uintptr_t end = access.address + access.size;
    for (std::uintptr_t at = access.address, next = 0; at < end; at = next) {
        next = std::min(end, (at / 8 + 1) * 8);
        use(at, next - at);
    }
}

}  // namespace

void Accesses::fail_race(const AccessRecord& race, std::uintptr_t at, long step, bool store) {
    log_.fail(fmt::format("data race on {}: {}, {}{}", log_.name_of(at), log_.described(race.step),
                          log_.described(step),
                          store && race.kind.store ? ": also if their values are equal" : ""),
              {race.step, step});
}

void Accesses::check(Thread& thread, const Access& access, bool store, long step) {
    for_words(access, [&](std::uintptr_t at, std::size_t size) {
        const auto race =
            races_.access(at - scene_.origin(), size, {store, access.order.has_value()},
                          thread.index, thread.view, step);
        if (race) {
            fail_race(*race, at, step, store);
        }
    });
    if (const auto* memory = store && thread.gave_up ? log_.memory_at(access.address) : nullptr;
        memory != nullptr && memory->rank >= 0 && memory->rank != thread.rank) {
        log_.fail(fmt::format("{} has given up, and stores into {}", thread.name(),
                              log_.name_of(access.address)));
    }
}

// Not at once: a race with a later store, or a wrong result, says more.
void Accesses::require_written() {
    if (const auto [thread, address] = never_written_; thread != nullptr) {
        const long step = log_.last_access(*thread, address);
        log_.fail(fmt::format("{} loads {}, which nothing has written", thread->name(),
                              log_.name_of(address)),
                  step < 0 ? std::vector<long>() : std::vector{step});
    }
}

// A plain access of a poll, with which the wait perhaps does not end.
void Accesses::check_tried(Thread& thread, const Access& access, bool store) {
    if (!waits_.has_stored()) {
        require_memory(thread, access, !store);
    }
    for_words(access, [&](std::uintptr_t at, std::size_t size) {
        const auto* const race =
            races_.find(at - scene_.origin(), size, {store, false}, thread.index, thread.view);
        if (race != nullptr) {
            const long step = log_.add(thread, {store ? kPlainStore : "plain load", access});
            fail_race(*race, at, step, store);
        }
    });
}

// Fails where the scene has no memory. Loads of what nothing has written are noted.
void Accesses::require_memory(Thread& thread, const Access& access, bool loads) {
    if (schedule_.is_shared_of_another(thread, access.address)) {
        log_.fail(fmt::format("{} {} {}, which is shared memory of another block", thread.name(),
                              loads ? "loads" : "stores into", log_.name_of(access.address)));
    }
    const MemoryFault fault = scene_.fault_of(access.address, access.size, !loads);
    if (fault == MemoryFault::kNone) {
        return;
    }
    if (fault == MemoryFault::kOutside) {
        require_written();
        const auto [begin, bytes] = scene_.allocation_at(access.address);
        log_.fail(fmt::format(
            "{} {} {} bytes at an address where the scene has no memory: {}", thread.name(),
            loads ? "loads" : "stores", access.size,
            bytes == 0 ? "before all of it"
                       : fmt::format("{} bytes after the begin of {}, of {}",
                                     access.address - begin, log_.name_of(begin), bytes)));
    }
    if (fault == MemoryFault::kNeverWritten) {
        if (never_written_.first == nullptr) {
            never_written_ = {&thread, access.address};
        }
        return;
    }
    const long step = log_.add(thread, {access.order ? "access"
                                        : loads      ? "plain load"
                                                     : kPlainStore,
                                        access});
    log_.fail(fmt::format("{} has changed by an access that the explorer does not see: found by a "
                          "{}",
                          log_.name_of(access.address), log_.described(step)),
              {step});
}

void Accesses::plain(Thread& thread, void* address, std::size_t size, bool store, void* place,
                     std::size_t alignment) {
    const Access access{scene_.modelled(address), size, place};
    const bool is_held = scene_.holds(access.address) || scene_.holds(access.address + size - 1);
    if (waits_.is_trying()) {
        if (is_held) {
            check_tried(thread, access, store);
        }
        if (store) {
            waits_.keep(address, size);
        }
        return;
    }
    if (store) {
        thread.idle.had_effect();
    }
    if (is_held) {
        plain_step(thread, access, store, alignment, false);
    } else {
        outside(thread, access, store);
    }
}

void Accesses::load_result(Thread& thread, void* address, std::size_t size, void* place) {
    plain_step(thread, {scene_.modelled(address), size, place}, false, 1, true);
}

void Accesses::plain_step(Thread& thread, const Access& access, bool store, std::size_t alignment,
                          bool is_check) {
    const bool is_aligned = access.address % alignment == 0;
    if (is_aligned) {
        require_memory(thread, access, !store && !is_check);
    }
    const long step = log_.add(thread, {store ? kPlainStore : "plain load", access});
    if (!is_aligned) {
        log_.fail(fmt::format("{} bytes at {} are not aligned: {}", access.size,
                              log_.name_of(access.address), log_.described(step)),
                  {step});
    }
    check(thread, access, store, step);
    if (store) {
        memory_.forget(access.address, access.size);
        scene_.will_store(access.address, access.size);
    }
}

void Accesses::refuse_stack_of_another(const Thread& thread, const Access& access, bool store) {
    if (const Thread* const owner = schedule_.owner_of_stack(access.address);
        owner != nullptr && owner != &thread) {
        log_.fail(fmt::format("{} {} a variable of {}, on its stack", thread.name(),
                              store ? "stores into" : "loads", owner->name()));
    }
}

// Nothing is known of the order of such accesses. Loads may be of constants: these are no steps.
void Accesses::outside(Thread& thread, const Access& access, bool store) {
    refuse_freed(thread, access, store);
    if (waits_.is_trying() || is_of_block(thread, access.address) ||
        (waits_.is_polling() && !is_global(access.address))) {  // a poll's own variable
        return;
    }
    refuse_stack_of_another(thread, access, store);
    const auto granule = [](std::uintptr_t address) { return address / kGranule; };
    const std::uintptr_t end = granule(access.address + access.size - 1) + 1;
    const auto found = outside_.lower_bound(granule(access.address));
    const bool was_stored = found != outside_.end() && found->first < end;
    if (!store && !was_stored) {
        if (is_global(access.address)) {
            log_.add_constant_load(thread);
        }
        for (std::uintptr_t at = granule(access.address); at < end; ++at) {
            OutsideLoad& load = loaded_[at % loaded_.size()];
            const bool is_known = load.granule == at && load.execution == execution_;
            load = {at, is_known && load.by != &thread ? nullptr : &thread, execution_};
        }
        return;
    }
    long step = -1;
    const auto add_step = [&] {
        step = log_.add(thread, {access.order ? (store ? "store" : "load")
                                 : store      ? kPlainStore
                                              : "plain load",
                                 access});
    };
    if (was_stored && found->second.thread != &thread) {
        const long earlier = found->second.step;
        add_step();
        log_.fail(fmt::format("threads share {}, which is no memory of the scene: {}, {}",
                              log_.name_of(access.address),
                              earlier < 0 ? found->second.thread->name() + " has stored there"
                                          : log_.described(earlier),
                              log_.described(step)),
                  {earlier < 0 ? step : earlier, step});
    }
    for (std::uintptr_t at = granule(access.address); store && at < end; ++at) {
        const OutsideLoad& load = loaded_[at % loaded_.size()];
        if (load.granule == at && load.execution == execution_ && load.by != &thread) {
            add_step();
            log_.fail(
                fmt::format("threads share {}, which is no memory of the scene: {} has "
                            "loaded there, {}",
                            log_.name_of(access.address),
                            load.by != nullptr ? load.by->name() : "another", log_.described(step)),
                {step});
        }
    }
    if (store && is_global(access.address)) {
        add_step();
    }
    for (std::uintptr_t at = granule(access.address); store && at < end; ++at) {
        outside_[at] = {&thread, step};
    }
}

void Accesses::keep_freed(const Thread& thread, void* memory, std::size_t size) {
    freed_[reinterpret_cast<std::uintptr_t>(memory)] = {memory, size, &thread};
}

void Accesses::refuse_freed(const Thread& thread, const Access& access, bool store) {
    const auto after = freed_.upper_bound(access.address);
    if (after == freed_.begin()) {
        return;
    }
    if (const auto& [begin, freed] = *std::prev(after); access.address - begin < freed.size) {
        log_.fail(fmt::format("{} {} memory of the heap that {} has freed", thread.name(),
                              store ? "stores into" : "loads", freed.thread->name()));
    }
}

}  // namespace symm::explore
