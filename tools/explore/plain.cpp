// Plain accesses, and what every access is checked for.

#include <fmt/core.h>

#include <algorithm>

#include "tools/explore/accesses.hpp"

namespace symm::explore {
namespace {

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

void Accesses::fail_race(const Thread& thread, const AccessRecord& race, std::uintptr_t at,
                         long step, bool store) {
    if (race.clock <= thread.view.now.steps_of(race.thread)) {
        log_.fail(
            fmt::format("no fence_alias() between accesses of {} by a multicast address and by "
                        "another one: {}, {}",
                        log_.name_of(at), log_.described(race.step), log_.described(step)),
            {race.step, step});
    }
    log_.fail(fmt::format("data race on {}: {}, {}{}", log_.name_of(at), log_.described(race.step),
                          log_.described(step),
                          store && race.kind.store ? ": also if their values are equal" : ""),
              {race.step, step});
}

void Accesses::check(Thread& thread, const Access& access, bool store, long step) {
    for_words(access, [&](std::uintptr_t at, std::size_t size) {
        const auto race = races_.access(at - scene_.origin(), size,
                                        {store, access.order.has_value(), thread.through_multicast},
                                        thread.index, thread.view, step);
        if (race) {
            fail_race(thread, *race, at, step, store);
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
            fail_race(thread, *race, at, step, store);
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
    if (fault == MemoryFault::kMulticast) {
        log_.fail(fmt::format(
            "{} {} {}: only a multimem instruction may access a multicast address", thread.name(),
            loads ? "loads" : "stores into", log_.name_of(access.address)));
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

}  // namespace symm::explore
