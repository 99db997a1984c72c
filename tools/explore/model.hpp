#pragma once
/// \file
/// The memory model: which stores a load may read.
///
/// It is RC11 with C++20's release sequences, told by views (Kang and others, "A Promising
/// Semantics for Relaxed-Memory Concurrency", without the promises): the stores to a location have
/// an order, and each thread has a *view*, the newest store that it knows at each location. A load
/// may read that store or a newer one, and a store may come anywhere after it.
///
/// | does                        | its thread then knows                                          |
/// |-----------------------------|----------------------------------------------------------------|
/// | loads, relaxed              | the store; an acquire fence later, what the store released     |
/// | loads, acquire              | the store, and what it released                                |
/// | stores, relaxed             | its store, which releases what the last release fence saw      |
/// | stores, release             | its store, which releases all that the thread knows            |
/// | adds, compares and swaps    | as a load and a store directly after the store that was read, which also releases what that one released; a compare that fails: as a load, with its order for that |
/// | plain accesses              | nothing new: two that are not ordered are a data race          |
///
/// An access by a multicast address and one by another address of the same memory have a fence
/// between them, too (multimem.hpp): a view knows which steps come before such a fence.
///
/// A view includes a vector clock: for each thread, how many of its steps come
/// before. A plain access is a race where the other one is not among them.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace symm::explore {

/// A set of small numbers.
class NumberSet {
public:
    void insert(std::size_t number) {
        if (number / 64 >= words_.size()) {
            words_.resize(number / 64 + 1);
        }
        words_[number / 64] |= std::uint64_t{1} << number % 64;
    }
    bool contains(std::size_t number) const {
        return number / 64 < words_.size() && (words_[number / 64] >> number % 64 & 1) != 0;
    }
    bool contains_other_than(std::size_t number) const {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            const std::uint64_t own = i == number / 64 ? std::uint64_t{1} << number % 64 : 0;
            if ((words_[i] & ~own) != 0) {
                return true;
            }
        }
        return false;
    }
    bool intersects(const NumberSet& other) const {
        const std::size_t both = std::min(words_.size(), other.words_.size());
        for (std::size_t i = 0; i < both; ++i) {
            if ((words_[i] & other.words_[i]) != 0) {
                return true;
            }
        }
        return false;
    }
    void insert(const NumberSet& other) {
        words_.resize(std::max(words_.size(), other.words_.size()));
        for (std::size_t i = 0; i < other.words_.size(); ++i) {
            words_[i] |= other.words_[i];
        }
    }

private:
    std::vector<std::uint64_t> words_;
};

struct StoreRecord;

/// The view of a thread, or the view that a store releases.
struct View {
    std::vector<std::uint32_t> clock;        ///< Steps of each thread.
    std::vector<std::uint32_t> fenced;       ///< Those that come before a fence_alias().
    std::vector<const StoreRecord*> newest;  ///< The newest store known at each location, or null.

    static std::uint32_t steps_of(const std::vector<std::uint32_t>& clock, int thread) {
        const auto i = static_cast<std::size_t>(thread);
        return i < clock.size() ? clock[i] : 0;
    }
    std::uint32_t steps_of(int thread) const { return steps_of(clock, thread); }
    void step(int thread);
    void fence_alias() { fenced = clock; }
    void know(std::size_t location, const StoreRecord* store);
    void join(const View& other);
};

/// A store, or the value that a location began with.
struct StoreRecord {
    std::uint64_t value = 0;
    std::uint64_t id = 0;          ///< The same in each execution where its thread did the same.
    std::size_t position = 0;      ///< In the order of its location's stores.
    std::uint64_t generation = 0;  ///< Its location had it then.
    long step = -1;                ///< In the log; -1: the initial value.
    bool updated = false;  ///< An addition or a swap has read it, and comes directly after it.
    NumberSet past;        ///< The choices that it depends on.
    View released;
};

/// A word that is accessed atomically.
struct Location {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    std::vector<StoreRecord*> stores;   ///< In their order. Empty: not accessed yet.
    std::uint64_t generation = 0;       ///< Plain stores, each of which begins a new history.
    NumberSet writers;                  ///< Threads that store to it in some execution.
    std::vector<std::size_t> overlaps;  ///< Locations of other sizes that share bytes with it.
};

/// A thread's part in the model.
struct ThreadView {
    View now;
    View acquirable;  ///< What an acquire fence would add.
    View released;    ///< What a relaxed store releases: `now` at the last release fence.
    NumberSet past;   ///< The choices that its next step depends on.
    std::uint32_t stores = 0;
};

inline bool acquires(std::memory_order order) {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}
inline bool releases(std::memory_order order) {
    return order >= std::memory_order_release;
}

/// All locations, and the rules of the table.
class Memory {
public:
    /// That of a scene at the address `origin`, of less than 4 GiB.
    explicit Memory(std::uintptr_t origin) : origin_(origin) {}
    /// Begins an execution: no location has been accessed.
    void clear();
    /// The number of the location of `size` bytes, at most 8, at `address`, which is created where
    /// it is new.
    std::size_t at(std::uintptr_t address, std::size_t size);
    /// A location of another size that was accessed and shares bytes with this one, or null.
    const Location* overlapped(std::size_t location) const;
    Location& operator[](std::size_t location) { return locations_[location]; }
    /// Another one after each store.
    std::uint64_t version_of(std::size_t location) const {
        const Location& one = locations_[location];
        return one.stores.size() + (one.generation << 32);
    }

    const std::deque<Location>& locations() const { return locations_; }

    /// The stores that a load may read, the newest first.
    std::vector<StoreRecord*> readable(std::size_t location, const ThreadView& view);
    static void read(std::size_t location, const StoreRecord& store, std::memory_order order,
                     ThreadView& view);
    /// Before how many of the newest stores a new one may come: all possible numbers, 0 first.
    std::vector<std::size_t> places(std::size_t location, const ThreadView& view);
    /// Puts a store before the `before` newest ones. `behind`: the store that an add or swap read.
    StoreRecord& store(std::size_t location, std::uint64_t value, std::memory_order order,
                       int thread, std::size_t before, const StoreRecord* behind, ThreadView& view);
    static void fence(std::memory_order order, int thread, ThreadView& view);
    /// Plain stores begin new histories.
    void forget(std::uintptr_t address, std::size_t size);

private:
    struct Place {
        std::uintptr_t address;
        std::size_t size;
        std::size_t location;
    };

    StoreRecord& new_record();

    std::uintptr_t origin_;
    std::unordered_map<std::uintptr_t, std::vector<Place>> words_;  ///< Those in 8 bytes.
    std::deque<Location> locations_;
    std::deque<StoreRecord> records_;
    std::size_t used_ = 0;
};

}  // namespace symm::explore
