// Plain accesses, and what every access is checked for.

#include <algorithm>

#include "tools/explore/accesses.hpp"

namespace symm::explore {
namespace {

extern "C" char __data_start, _end;  // NOLINT: the linker's: all global variables lie between them
bool is_global(std::uintptr_t address) {
    const auto* const at = reinterpret_cast<const char*>(address);
    return &__data_start <= at && at < &_end;
}

}  // namespace

void Accesses::check(Thread& thread, const Access& access, bool store, long step) {
    const std::uintptr_t end = access.address + access.size;
    for (std::uintptr_t at = access.address, next = 0; at < end; at = next) {
        next = std::min(end, (at / 8 + 1) * 8);
        const auto race =
            races_.access(at - scene_.origin(), next - at, {store, access.order.has_value()},
                          thread.index, thread.view, step);
        if (race) {
            log_.fail(
                fmt::format("data race on {}: {}, {}{}", log_.name_of(at),
                            log_.described(race->step), log_.described(step),
                            store && race->kind.store ? ": also if their values are equal" : ""),
                {race->step, step});
        }
    }
    if (const auto* memory = store && thread.gave_up ? log_.memory_at(access.address) : nullptr;
        memory != nullptr && memory->rank >= 0 && memory->rank != thread.rank) {
        log_.fail(fmt::format("{} has given up, and stores into {}", thread.name(),
                              log_.name_of(access.address)));
    }
}

void Accesses::plain(Thread& thread, void* address, std::size_t size, bool store, void* place,
                     std::size_t alignment) {
    if (waits_.is_trying()) {
        if (store) {
            waits_.keep(address, size);
        }
        return;
    }
    const Access access{scene_.modelled(address), size, place};
    const bool is_held = scene_.holds(access.address);
    const bool is_own = address >= __builtin_frame_address(0) && address < thread.stack_base;
    if (store && (is_held || !is_own)) {
        thread.idle.had_effect();
        if (!is_held) {
            outside(thread, access, true);
        }
    }
    if (!is_held) {
        return;
    }
    const long step = log_.add(thread, {store ? "plain store" : "plain load", access});
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
        log_.fail(fmt::format("{} bytes at {} are not aligned: {}", size,
                              log_.name_of(access.address), log_.described(step)),
                  {step});
    }
    check(thread, access, store, step);
    if (store) {
        memory_.forget(access.address, size);
    }
}

// Nothing is known of the order of such accesses. Loads may be of constants: these are no steps.
void Accesses::outside(Thread& thread, const Access& access, bool store) {
    if (waits_.is_trying() || !is_global(access.address)) {
        return;
    }
    const auto found = outside_.find(access.address);
    if (!store && found == outside_.end()) {
        log_.add_constant_load(thread);
        return;
    }
    const long step =
        log_.add(thread, {access.order ? (store ? "store" : "load") : "plain store", access});
    if (found != outside_.end() && log_.step(found->second).thread != &thread) {
        log_.fail(fmt::format("threads share a global variable, which is no memory of the scene: "
                              "{}, {}",
                              log_.described(found->second), log_.described(step)),
                  {found->second, step});
    }
    if (store) {
        outside_[access.address] = step;
    }
}

}  // namespace symm::explore
