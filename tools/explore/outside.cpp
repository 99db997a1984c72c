// Accesses of memory that is not the scene's: global variables, the heap, other threads' stacks.

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
    if (is_thread_local(access.address)) {  // all threads run on one of the host
        log_.fail(fmt::format("{} uses a thread_local variable: kernels have none", thread.name()));
    }
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
    const auto fail_shared = [&](const std::string& other, long earlier) {
        add_step();
        log_.fail(fmt::format("threads share {}, which is no memory of the scene: {}, {}",
                              log_.name_of(access.address), other, log_.described(step)),
                  {earlier < 0 ? step : earlier, step});
    };
    if (was_stored && found->second.thread != &thread) {
        const long earlier = found->second.step;
        fail_shared(earlier < 0 ? found->second.thread->name() + " has stored there"
                                : log_.described(earlier),
                    earlier);
    }
    for (std::uintptr_t at = granule(access.address); store && at < end; ++at) {
        const OutsideLoad& load = loaded_[at % loaded_.size()];
        if (load.granule == at && load.execution == execution_ && load.by != &thread) {
            fail_shared((load.by != nullptr ? load.by->name() : "another") + " has loaded there",
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
