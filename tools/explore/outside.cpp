// Accesses of memory that is not the scene's: global variables, the heap, other threads' stacks.

#include <fmt/core.h>

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

}  // namespace

void Accesses::refuse_locals_of_others(const Thread& thread, const Access& access, bool store) {
    constexpr std::uintptr_t kSetup = 1 << 20;  // as far as its stack may have reached
    const Thread* const owner = schedule_.owner_of_stack(access.address);
    const char* const what = store ? "stores into" : "loads";
    if (owner != nullptr && owner != &thread) {
        log_.fail(fmt::format("{} {} a variable of {}, on its stack", thread.name(), what,
                              owner->name()));
    }
    if (setups_frame_ - access.address - 1 < kSetup) {
        log_.fail(
            fmt::format("{} {} a local variable of the setup, which has returned: capture it "
                        "by value",
                        thread.name(), what));
    }
    if (is_thread_local(access.address)) {  // all threads run on one of the host
        log_.fail(
            fmt::format("{} {} a thread_local variable: kernels have none", thread.name(), what));
    }
}

// Nothing is known of the order of such accesses. Loads may be of constants: these are no steps.
void Accesses::outside(Thread& thread, const Access& access, bool store) {
    refuse_freed(thread, access, store);
    if (waits_.is_trying() || is_of_block(thread, access.address) ||
        (waits_.is_polling() && waits_.is_of_poll(access.address))) {
        return;
    }
    refuse_locals_of_others(thread, access, store);
    const auto granule = [](std::uintptr_t address) { return address / kGranule; };
    const std::uintptr_t end = granule(access.address + access.size - 1) + 1;
    const auto begin = outside_.lower_bound(granule(access.address));
    const auto after = outside_.lower_bound(end);
    const auto of_another = std::find_if(
        begin, after, [&](const auto& stored) { return stored.second.thread != &thread; });
    if (!store && begin == after) {
        if (is_global(access.address)) {
            log_.add_constant_load(thread);
        }
        for (std::uintptr_t at = granule(access.address); at < end; ++at) {
            const auto [load, is_first] = loaded_.try_emplace(at, &thread);
            load->second = is_first || load->second == &thread ? &thread : nullptr;
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
    const auto fail_shared = [&](const std::string& other, long earlier) {
        add_step();
        log_.fail(fmt::format("threads share {}, which is no memory of the scene: {}, {}",
                              log_.name_of(access.address), other, log_.described(step)),
                  {earlier < 0 ? step : earlier, step});
    };
    if (of_another != after) {
        const auto& [by, earlier] = of_another->second;
        fail_shared(earlier < 0 ? by->name() + " has stored there" : log_.described(earlier),
                    earlier);
    }
    for (std::uintptr_t at = granule(access.address); store && at < end; ++at) {
        if (const auto load = loaded_.find(at); load != loaded_.end() && load->second != &thread) {
            fail_shared(
                (load->second != nullptr ? load->second->name() : "another") + " has loaded there",
                -1);
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
