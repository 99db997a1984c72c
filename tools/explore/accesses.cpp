// Accesses, as instrumentation.cpp reports them.

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "tools/explore/exploration.hpp"

namespace symm::explore {
namespace {

/// More steps than any execution that ends. Nothing else ends a loop that never lets another thread
/// run.
constexpr std::size_t kMostSteps = 100'000;

/// A thread that has made this many loads and nothing else may be in a loop that polls, also if
/// none of them was a choice.
constexpr std::size_t kManyIdleLoads = 64;

extern "C" char __data_start, _end;  // NOLINT: the linker's: all global variables lie between them
bool is_global(const void* address) {
    return &__data_start <= address && address < &_end;
}

constexpr const char* kPlainStore = "plain store";

}  // namespace

void Exploration::check_endless() {
    if (log_.size() + constant_loads_ >= kMostSteps) {
        fail(fmt::format("{} is in an endless loop: {} steps in one execution", name_of(*current_),
                         kMostSteps));
    }
}

long Exploration::log(LoggedStep step) {
    check_endless();
    log_stored();
    step.thread = number_of(*current_);
    step.frame = current_->frame;
    step.bytes = bytes_.size();
    if (step.access.address != 0 && !step.access.order) {
        const char* const bytes = real_of(step.access.address);
        bytes_.insert(bytes_.end(), bytes, bytes + step.access.size);
    }
    log_.push_back(std::move(step));
    return static_cast<long>(log_.size()) - 1;
}

std::string Exploration::described(long step) const {
    const LoggedStep& one = log_[static_cast<std::size_t>(step)];
    return fmt::format("{} by {} (step {})", one.what,
                       name_of(threads_[static_cast<std::size_t>(one.thread)]), step);
}

// The last step, if it was a plain store, has now been made: keeps what it has stored.
void Exploration::log_stored() {
    if (!log_.empty() && log_.back().what == kPlainStore) {
        const LoggedStep& step = log_.back();
        std::memcpy(&bytes_[step.bytes], real_of(step.access.address), step.access.size);
    }
}

void Exploration::check_access(const Access& access, bool store, long step) {
    const std::uintptr_t end = access.address + access.size;
    for (std::uintptr_t at = access.address, next = 0; at < end; at = next) {
        next = std::min(end, (at / 8 + 1) * 8);
        const auto race = races_.access(at - reinterpret_cast<std::uintptr_t>(scene_), next - at,
                                        {store, access.order.has_value()}, number_of(*current_),
                                        current_->view, step);
        if (race) {
            involved_ = {race->step, step};
            fail(fmt::format("data race on {}: {}, {}{}", name_of(at), described(race->step),
                             described(step),
                             store && race->kind.store ? ": also if their values are equal" : ""));
        }
    }
    if (const auto* memory = store && current_->gave_up ? memory_at(access.address) : nullptr;
        memory != nullptr && memory->rank >= 0 && memory->rank != current_->rank) {
        fail(fmt::format("{} has given up, and stores into {}", name_of(*current_),
                         name_of(access.address)));
    }
}

// The location of an atomic access, all of which must have its size.
std::size_t Exploration::word(const AtomicAccess& access) {
    if (access.is_static()) {  // a plain store may have changed it
        std::memcpy(reinterpret_cast<void*>(access.address), access.real, access.size);
    }
    const std::size_t number = memory_.at(access.address, access.size);
    const Location* const other = memory_.overlapped(number);
    if (other == nullptr) {
        return number;
    }
    const auto earlier = std::find_if(log_.rbegin(), log_.rend(), [&](const LoggedStep& step) {
        return step.access.order && step.access.address == other->address &&
               step.access.size == other->size;
    });
    std::string by = "in a poll";
    if (earlier != log_.rend()) {
        involved_.push_back(log_.rend() - earlier - 1);
        by = described(involved_.back());
    }
    const long step = log({"access", access});
    involved_.push_back(step);
    fail(fmt::format("atomic accesses of two sizes: {} bytes of {}, {}; {} bytes of {}, {}",
                     other->size, name_of(other->address), by, access.size, name_of(access.address),
                     described(step)));
}

void Exploration::fail_in_poll(const std::string& what) {
    fail(fmt::format("{} makes {} in the poll of a wait, which may only load", name_of(*current_),
                     what));
}

void Exploration::plain(void* address, std::size_t size, bool store, void* place,
                        std::size_t alignment) {
    const Inside inside(*this);
    const auto* const here = static_cast<const char*>(__builtin_frame_address(0));
    if (trying_) {
        if (store && !(here <= address && address < poll_frame_)) {
            auto* const bytes = static_cast<char*>(address);
            overwritten_.emplace_back(bytes, std::vector<char>(bytes, bytes + size));
        }
        return;
    }
    const Access access{modelled(address), size, place};
    const bool is_held = holds(access.address);
    if (store && (is_held || !(here <= address && address < current_->stack_base))) {
        had_effect();
        if (!is_held) {
            outside(access, true);
        }
    }
    if (!is_held) {
        return;
    }
    const long step = log({store ? kPlainStore : "plain load", access});
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
        involved_ = {step};
        fail(fmt::format("{} bytes at {} are not aligned: {}", size, name_of(access.address),
                         described(step)));
    }
    check_access(access, store, step);
    if (store) {
        memory_.forget(access.address, size);
    }
}

// Nothing is known of the order of such accesses. Loads may be of constants: these are no steps.
void Exploration::outside(const Access& access, bool store) {
    const Inside inside(*this);
    if (trying_ || !is_global(reinterpret_cast<void*>(access.address))) {
        return;
    }
    const auto found = outside_.find(access.address);
    if (!store && found == outside_.end()) {
        ++constant_loads_;
        check_endless();
        return;
    }
    const long step = log({access.order ? (store ? "store" : "load") : kPlainStore, access});
    if (found != outside_.end() &&
        log_[static_cast<std::size_t>(found->second)].thread != number_of(*current_)) {
        involved_ = {found->second, step};
        fail(fmt::format("threads share a global variable, which is no memory of the scene: {}, {}",
                         described(found->second), described(step)));
    }
    if (store) {
        outside_[access.address] = step;
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

void Exploration::read(std::size_t location, const StoreRecord& store, const Access& access) {
    Memory::read(location, store, *access.order, current_->view);
    current_->last_reads = {&store, current_->last_reads[0]};
    if (!trying_) {
        const long step = log({"load", access, store.value, store.step, choices_});
        if (making_ != nullptr && loads_ <= conditions_.size()) {
            log_.back().until = conditions_[loads_ - 1];
        }
        check_access(access, false, step);
        current_->reads.push_back(store.id);
    }
}

std::uint64_t Exploration::load(const AtomicAccess& access) {
    if (access.order == std::memory_order_seq_cst) {  // as on a GPU
        fence(std::memory_order_seq_cst, access);
        AtomicAccess acquire = access;
        acquire.order = std::memory_order_acquire;
        return load(acquire);
    }
    std::size_t location = 0;
    std::vector<std::uint64_t> state;
    bool is_choice = false;
    {
        const Inside inside(*this);
        location = word(access);
        is_choice = !is_polling() && has_other_writer(location);
        if (is_choice || (!is_polling() && ++current_->idle_loads > kManyIdleLoads)) {
            state = state_of_thread(access);
            spin_if_known(state, location);
        }
    }
    std::uint64_t value = 0;
    if (is_choice) {  // a wait that ends at once
        await(
            [&] {
                value = load(access);
                return true;
            },
            nullptr, false);
    } else {
        const Inside inside(*this);
        const StoreRecord& newest = *memory_[location].stores.back();
        choices_ = {{newest.step, newest.value}};
        const StoreRecord& store = is_polling() ? chosen(location, false) : newest;
        read(location, store, access);
        value = assumed_ != nullptr && loads_ <= assumed_->size() ? (*assumed_)[loads_ - 1].value
                                                                  : store.value;
    }
    if (!state.empty()) {
        const Inside inside(*this);
        add_idle_load(std::move(state), location, value);
    }
    return value;
}

void Exploration::put(std::size_t location, std::uint64_t value, const AtomicAccess& access,
                      const StoreRecord* behind) {
    had_effect();
    const int me = number_of(*current_);
    Location& word = memory_[location];
    if (!word.writers.contains(static_cast<std::size_t>(me))) {
        word.writers.insert(static_cast<std::size_t>(me));
        begin_again_ = true;
    }
    std::size_t before = 0;
    if (behind == nullptr) {
        const auto places = memory_.places(location, current_->view);
        before = places[search_.choose(places.size())];
    }
    const long step = log({"store", access, value});
    check_access(access, true, step);
    memory_.store(location, value, *access.order, me, before, behind, current_->view).step = step;
    if (access.is_static()) {
        std::memcpy(access.real, reinterpret_cast<void*>(access.address), access.size);
    }
    search_.stored(location, me, current_->view.past);
}

void Exploration::store(const AtomicAccess& access, std::uint64_t value) {
    const Inside inside(*this);
    if (is_polling()) {
        fail_in_poll("a store");
    }
    AtomicAccess ordered = access;
    if (access.order == std::memory_order_seq_cst) {
        fence(std::memory_order_seq_cst, access);
        ordered.order = std::memory_order_release;
    }
    put(word(ordered), value, ordered, nullptr);
}

std::uint64_t Exploration::update(const AtomicAccess& access,
                                  const std::function<std::uint64_t(std::uint64_t)>& change,
                                  std::optional<std::uint64_t> expected,
                                  std::memory_order failure) {
    const Inside inside(*this);
    if (is_polling()) {
        fail_in_poll("an addition or a swap");
    }
    AtomicAccess succeeded = access;
    if (access.order == std::memory_order_seq_cst || failure == std::memory_order_seq_cst) {
        fence(std::memory_order_seq_cst, access);
        succeeded.order = std::memory_order_acq_rel;
        failure = std::memory_order_acquire;
    }
    std::vector<std::uint64_t> state;
    if (expected) {
        state = state_of_thread(access);
        spin_if_known(state, word(access));
    }
    const NumberSet past = current_->view.past;
    StoreRecord* old = nullptr;
    const auto succeeds = [&] { return !expected || old->value == *expected; };
    const auto read_old = [&] {
        const Inside inside(*this);
        const std::size_t location = word(access);
        old = &chosen(location, true, expected);
        if (!trying_) {
            Access done = succeeded;
            done.order = succeeds() ? succeeded.order : failure;
            read(location, *old, done);
        }
        return true;
    };
    await(read_old, nullptr, false);
    const std::size_t location = word(access);
    search_.updated(location, past);
    if (succeeds()) {
        old->updated = true;
        put(location, change(old->value), succeeded, old);
    } else {
        add_idle_load(std::move(state), location, old->value);
    }
    return old->value;
}

void Exploration::volatile_load(const AtomicAccess& access) {
    const std::uint64_t value = load(access);
    const Inside inside(*this);
    volatile_ = {access};
    std::memcpy(&volatile_.newest, access.real, access.size);
    std::memcpy(access.real, &value, access.size);
}

void Exploration::volatile_store(const AtomicAccess& access) {
    const Inside inside(*this);
    volatile_ = {access, true};
    std::memcpy(&volatile_.newest, access.real, access.size);
}

void Exploration::settle_volatile() {
    const auto last = std::exchange(volatile_, {});
    std::uint64_t value = 0;
    std::memcpy(&value, last.access.real, last.access.size);
    std::memcpy(last.access.real, &last.newest, last.access.size);
    if (last.store) {
        store(last.access, value);
    }
}

void Exploration::acquire_both() {
    const Inside inside(*this);
    auto step = log_.rbegin();
    for (const StoreRecord* store : current_->last_reads) {
        current_->view.now.join(store->released);
        if (!trying_) {  // each half was loaded relaxed: together they are one load, acquire
            step = std::find_if(step, log_.rend(), [&](const LoggedStep& one) {
                return one.thread == number_of(*current_) && std::string_view(one.what) == "load";
            });
            step->access.order = std::memory_order_acquire;
            ++step;
        }
    }
}

void Exploration::fence(std::memory_order order, const AtomicAccess& access) {
    const Inside inside(*this);
    Memory::fence(order, number_of(*current_), current_->view);
    if (order == std::memory_order_seq_cst) {
        if (is_polling()) {
            fail_in_poll("a seq_cst access or fence");
        }
        // These fences have an order, and what comes before one is known after the next, as in PTX:
        // each is an addition to the same word. It is no effect of a loop that polls.
        const auto idle = current_->idle;
        const auto perhaps_spins = current_->perhaps_spins;
        const std::size_t idle_loads = current_->idle_loads;
        AtomicAccess of_order = access;
        of_order.address = reinterpret_cast<std::uintptr_t>(scene_);
        of_order.size = sizeof(std::uint64_t);
        of_order.order = std::memory_order_acq_rel;
        of_order.real = nullptr;
        update(of_order, [](std::uint64_t fences) { return fences + 1; }, {}, {});
        current_->idle = idle;
        current_->idle_loads = idle_loads;
        current_->perhaps_spins = perhaps_spins;
        Memory::fence(std::memory_order_release, number_of(*current_), current_->view);
    }
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
