// Accesses, as instrumentation.cpp reports them.

#include "common/explore/execution.hpp"

#include <stdexcept>

#include "common/explore/runtime.hpp"

namespace symm::explore {
namespace {

/// More steps than any execution that ends. A loop that polls without a Waiter never lets another
/// thread run, so nothing else would end it.
constexpr std::size_t kMostSteps = 100'000;

}  // namespace

long Runtime::log(const char* what, int order, std::uintptr_t address, std::uint64_t value,
                  void* place, long from, long newest) {
    if (log_.size() >= kMostSteps) {
        fail(fmt::format("{} is in an endless loop: {} steps in one execution", name_of(*current_),
                         kMostSteps));
    }
    log_.push_back(
        {number_of(*current_), what, order, address, value, from, newest, place, current_->call});
    return static_cast<long>(log_.size()) - 1;
}

void Runtime::access(std::uintptr_t address, std::size_t size, Kind kind, void* place) {
    const char* const what =
        kind.atomic ? (kind.store ? "store" : "load") : (kind.store ? "plain store" : "plain load");
    const long step =
        kind.atomic ? static_cast<long>(log_.size()) - 1 : log(what, -1, address, 0, place);
    for (std::uintptr_t at = address; at < address + size;) {
        const std::uintptr_t end = std::min(address + size, (at / 8 + 1) * 8);
        const auto race = races_.access(at - reinterpret_cast<std::uintptr_t>(scene_), end - at,
                                        kind, number_of(*current_), current_->mind, step);
        if (race) {
            const Thread& other = threads_[static_cast<std::size_t>(race->thread)];
            const Logged& earlier = log_[static_cast<std::size_t>(race->step)];
            involved_ = {static_cast<std::size_t>(race->step), static_cast<std::size_t>(step)};
            fail(fmt::format("data race on {}: {} by {} (step {}), {} by {} (step {})", name_of(at),
                             earlier.what, name_of(other), race->step, what, name_of(*current_),
                             step));
        }
        at = end;
    }
}

void Runtime::plain(void* address, std::size_t size, bool store, void* place) {
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
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    access(begin, size, {store, false}, place);
    if (store) {
        memory_.forget(begin, size);
    }
}

std::uint64_t Runtime::load(std::uintptr_t address, unsigned size, int order, void* place) {
    const std::size_t location = [&] {
        const Inside inside(*this);
        return memory_.at(address, size);
    }();
    if (!trying_ && making_ == nullptr) {
        bool alone = true;
        {
            const Inside inside(*this);
            for (std::size_t i = 0; i < thread_count_ && alone; ++i) {
                alone = &threads_[i] == current_ || !memory_[location].writers.contains(i);
            }
        }
        if (!alone) {  // a wait that ends at once
            struct Load {
                std::uintptr_t address;
                unsigned size;
                int order;
                void* place;
                std::uint64_t value;
            } one{address, size, order, place, 0};
            await(
                [](void* context) {
                    Load& load = *static_cast<Load*>(context);
                    load.value = running->load(load.address, load.size, load.order, load.place);
                    return true;
                },
                &one, nullptr);
            return one.value;
        }
    }
    const Inside inside(*this);
    const bool polls = trying_ || making_ != nullptr;
    StoreRecord& store = polls ? chosen(location, false) : *memory_[location].stores.back();
    Memory::read(location, store, order, current_->mind);
    current_->last_reads = {&store, current_->last_reads[0]};
    if (!trying_) {
        const auto& stores = memory_[location].stores;
        log("load", order, address, store.value, place, store.step,
            stores.back() != &store ? stores.back()->step : -1);
        access(address, size, {false, true}, place);
        reads_[static_cast<std::size_t>(number_of(*current_))].push_back(store.id);
    }
    return store.value;
}

void Runtime::put(std::size_t location, std::uint64_t value, int order, const StoreRecord* behind,
                  void* place) {
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
    const long step = log("store", order, word.address, value, place);
    access(word.address, word.size, {true, true}, place);
    memory_.store(location, value, order, me, before, behind, current_->mind).step = step;
    search_.stored(location, me, current_->mind.past);
}

void Runtime::store(std::uintptr_t address, unsigned size, std::uint64_t value, int order,
                    void* place) {
    const Inside inside(*this);
    if (trying_ || making_ != nullptr) {
        throw std::runtime_error("a poll must not store");
    }
    put(memory_.at(address, size), value, order, nullptr, place);
}

std::uint64_t Runtime::update(std::uintptr_t address, unsigned size, int order, int failure,
                              void* place, const std::uint64_t* expected,
                              std::uint64_t (*change)(std::uint64_t, std::uint64_t),
                              std::uint64_t operand) {
    struct Update {
        std::uintptr_t address;
        unsigned size;
        int order, failure;
        void* place;
        const std::uint64_t* expected;
        std::uint64_t old;
        bool succeeds() const { return expected == nullptr || old == *expected; }
    } one{address, size, order, failure, place, expected, 0};
    const Set past = current_->mind.past;
    await(
        [](void* context) {
            Update& u = *static_cast<Update*>(context);
            Runtime& r = *running;
            const Inside inside(r);
            const std::size_t location = r.memory_.at(u.address, u.size);
            StoreRecord& read = r.chosen(location, true, u.expected);
            u.old = read.value;
            if (r.trying_) {
                return true;
            }
            const int order = u.succeeds() ? u.order : u.failure;
            Memory::read(location, read, order, r.current_->mind);
            r.log("load", order, u.address, read.value, u.place, read.step);
            r.access(u.address, u.size, {false, true}, u.place);
            r.reads_[static_cast<std::size_t>(r.number_of(*r.current_))].push_back(read.id);
            return true;
        },
        &one, nullptr);
    const Inside inside(*this);
    const std::size_t location = memory_.at(address, size);
    search_.updated(location, past);
    if (one.succeeds()) {
        StoreRecord* read = nullptr;
        for (StoreRecord* store : memory_[location].stores) {
            if (store->id == reads_[static_cast<std::size_t>(number_of(*current_))].back()) {
                read = store;
            }
        }
        read->updated = true;
        put(location, change(one.old, operand), order, read, place);
    }
    return one.old;
}

bool is_running() {
    return running != nullptr && running->is_running();
}
bool is_in_scene(const volatile void* address) {
    return running->holds(address);
}
void plain_access(void* address, std::size_t size, bool store, void* place) {
    if (is_running() && size != 0) {
        running->plain(address, size, store, place);
    }
}
std::uint64_t atomic_load(std::uintptr_t address, unsigned size, int order, void* place) {
    return running->load(address, size, order, place);
}
void atomic_store(std::uintptr_t address, unsigned size, std::uint64_t value, int order,
                  void* place) {
    running->store(address, size, value, order, place);
}
std::uint64_t atomic_update(std::uintptr_t address, unsigned size, int order, int failure,
                            void* place, const std::uint64_t* expected,
                            std::uint64_t (*change)(std::uint64_t old, std::uint64_t operand),
                            std::uint64_t operand) {
    return running->update(address, size, order, failure, place, expected, change, operand);
}
void atomic_fence(int order) {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->fence(order);
    }
}
void enter_function(void* place) {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->enter(place);
    }
}
void leave_function() {
    if (is_running()) {
        const Runtime::Inside inside(*running);
        running->leave();
    }
}

}  // namespace symm::explore
