#pragma once
/// \file
/// The accesses of an execution: what each does to the model's memory and its thread's view.
///
/// 1. A load that only one store can answer reads it. One that may read several is a wait that ends
///    at once (waits.hpp).
/// 2. A store chooses its place among the stores of its word, and reports itself to the search,
///    which finds the earlier loads that could have read it.
/// 3. An addition or a swap is a load, and a store directly after the store that was read.
/// 4. A seq_cst access is a seq_cst fence, and an access that acquires or releases, as on a GPU.
/// 5. Plain accesses happen as they are. Each access is checked for races with earlier ones, and
///    for stores of a rank that has given up.

#include <unordered_map>

#include "tools/explore/races.hpp"
#include "tools/explore/waits.hpp"

namespace symm::explore {

/// An atomic access that a kernel makes.
struct AtomicAccess : Access {
    const void* frame = nullptr;  ///< That of the instrumentation's function.
    void* real = nullptr;         ///< Where the kernel finds the word.

    /// Whether it is of a __shared__ variable, which the model knows by another address.
    bool is_static() const {
        return real != nullptr && reinterpret_cast<std::uintptr_t>(real) != address;
    }
};

/// All functions are called by the thread that runs, or whose poll is called.
class Accesses {
public:
    Accesses(SceneMemory& scene, Memory& memory, Search& search, Schedule& schedule, Log& log,
             Waits& waits)
        : scene_(scene),
          memory_(memory),
          search_(search),
          schedule_(schedule),
          log_(log),
          waits_(waits) {}

    ~Accesses() { clear(); }
    void clear();

    /// The address must be a multiple of `alignment`.
    void plain(Thread& thread, void* address, std::size_t size, bool store, void* place,
               std::size_t alignment);
    /// A load of the scene's own check, which may be of what nothing has written.
    void load_result(Thread& thread, void* address, std::size_t size, void* place);
    /// An access of memory that is not the scene's.
    void outside(Thread& thread, const Access& access, bool store);
    /// Called at the end: fails if a thread has loaded what nothing had written.
    void require_written();
    /// A thread frees memory of the heap, which is given back when the next execution begins.
    void keep_freed(const Thread& thread, void* memory, std::size_t size);
    std::uint64_t load(Thread& thread, AtomicAccess access);
    void store(Thread& thread, AtomicAccess access, std::uint64_t value);
    /// Loads, then stores `change(old)` directly after; only loads, with the order `failure`, if
    /// the old value is not the expected one. Returns the old value.
    std::uint64_t update(Thread& thread, AtomicAccess access,
                         const std::function<std::uint64_t(std::uint64_t)>& change,
                         std::optional<std::uint64_t> expected, std::memory_order failure);
    void fence(Thread& thread, std::memory_order order, const AtomicAccess& access);
    /// The thread's last two loads acquire.
    void acquire_both(Thread& thread);
    /// Clang announces volatile accesses before it makes them: lets the load find its value in
    /// memory; takes what was stored there. As in PTX, they are relaxed.
    void volatile_load(Thread& thread, const AtomicAccess& access);
    void volatile_store(const AtomicAccess& access);
    /// Called when the thread enters the explorer the next time: the announced access is made.
    void settle_volatile(Thread& thread) {
        if (volatile_.access.address != 0) {
            settle(thread);
        }
    }

    /// The frame that the setup returns to.
    void begin_setup(std::uintptr_t frame) { setups_frame_ = frame; }

private:
    void settle(Thread& thread);
    void split_seq_cst(Thread& thread, AtomicAccess& access, std::memory_order rest);
    std::size_t word(Thread& thread, const AtomicAccess& access, bool loads);
    void plain_step(Thread& thread, const Access& access, bool store, std::size_t alignment,
                    bool is_check);
    void refuse_freed(const Thread& thread, const Access& access, bool store);
    void refuse_locals_of_others(const Thread& thread, const Access& access, bool store);
    void check_tried(Thread& thread, const Access& access, bool store);
    [[noreturn]] void fail_race(const Thread& thread, const AccessRecord& race, std::uintptr_t at,
                                long step, bool store);
    void require_memory(Thread& thread, const Access& access, bool loads);
    std::uint64_t load_of(Thread& thread, std::size_t location, const Access& access);
    void read(Thread& thread, std::size_t location, Read read, const Access& access);
    void put(Thread& thread, std::size_t location, std::uint64_t value, const AtomicAccess& access,
             const StoreRecord* behind);
    void check(Thread& thread, const Access& access, bool store, long step);

    SceneMemory& scene_;
    Memory& memory_;
    Search& search_;
    Schedule& schedule_;
    Log& log_;
    Waits& waits_;
    Races races_;
    /// The first load of what nothing had written: its thread and address.
    std::pair<const Thread*, std::uintptr_t> never_written_{};
    struct OutsideStore {
        const Thread* thread;
        long step;  ///< -1: it is none, as that of a text on the heap.
    };
    struct Freed {
        void* memory;
        std::size_t size;
        const Thread* thread;
    };
    std::map<std::uintptr_t, Freed> freed_;  ///< By their begins.
    /// The last store to each granule of global variables and the heap.
    std::map<std::uintptr_t, OutsideStore> outside_;
    /// Who has loaded a granule; null: several threads.
    std::unordered_map<std::uintptr_t, const Thread*> loaded_;
    std::uintptr_t setups_frame_ = 0;
    struct {
        AtomicAccess access = {};
        bool store = false;
        std::uint64_t newest = 0;  ///< What belongs into memory.
    } volatile_;                   ///< The last access, if it was volatile.
};

}  // namespace symm::explore
