#include "tools/explore/model.hpp"

#include <cstring>

namespace symm::explore {
namespace {

std::uint64_t value_at(std::uintptr_t address, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(address), size);
    return value;
}

/// Whether `a` comes after `b`, which may be null. Both belong to one location.
bool newer(const StoreRecord* a, const StoreRecord* b) {
    return b == nullptr || a->generation > b->generation ||
           (a->generation == b->generation && a->position > b->position);
}

/// The place of the newest store that the thread knows.
std::size_t first_known(const Location& location, std::size_t number, const ThreadView& view) {
    const StoreRecord* const known =
        number < view.now.newest.size() ? view.now.newest[number] : nullptr;
    return known != nullptr && known->generation == location.generation ? known->position : 0;
}

}  // namespace

void View::step(int thread) {
    const auto i = static_cast<std::size_t>(thread);
    if (i >= clock.size()) {
        clock.resize(i + 1);
    }
    ++clock[i];
}

void View::know(std::size_t location, const StoreRecord* store) {
    if (location >= newest.size()) {
        newest.resize(location + 1);
    }
    if (newer(store, newest[location])) {
        newest[location] = store;
    }
}

void View::join(const View& other) {
    const auto join_steps = [](std::vector<std::uint32_t>& all,
                               const std::vector<std::uint32_t>& others) {
        all.resize(std::max(all.size(), others.size()));
        for (std::size_t i = 0; i < others.size(); ++i) {
            all[i] = std::max(all[i], others[i]);
        }
    };
    join_steps(clock, other.clock);
    join_steps(fenced, other.fenced);
    newest.resize(std::max(newest.size(), other.newest.size()));
    for (std::size_t i = 0; i < other.newest.size(); ++i) {
        if (other.newest[i] != nullptr && newer(other.newest[i], newest[i])) {
            newest[i] = other.newest[i];
        }
    }
}

void Memory::clear() {
    for (Location& location : locations_) {
        location.stores.clear();
        location.generation = 0;
    }
    used_ = 0;
}

StoreRecord& Memory::new_record() {
    if (used_ == records_.size()) {
        records_.emplace_back();
    }
    return records_[used_++] = {};
}

std::size_t Memory::at(std::uintptr_t address, std::size_t size) {
    std::vector<Place>& word = words_[address / 8];
    auto place = std::ranges::find_if(
        word, [&](const Place& one) { return one.address == address && one.size == size; });
    if (place == word.end()) {
        const std::size_t number = locations_.size();
        Location& location = locations_.emplace_back();
        location.address = address;
        location.size = size;
        for (const Place& other : word) {
            if (address < other.address + other.size && other.address < address + size) {
                location.overlaps.push_back(other.location);
                locations_[other.location].overlaps.push_back(number);
            }
        }
        place = word.insert(word.end(), {address, size, number});
    }
    Location& location = locations_[place->location];
    if (location.stores.empty()) {
        StoreRecord& initial = new_record();
        initial.value = value_at(address, size);
        initial.id = std::uint64_t{1} << 63 | location.generation << 32 | (address - origin_);
        initial.generation = location.generation;
        location.stores.push_back(&initial);
    }
    return place->location;
}

const Location* Memory::overlapped(std::size_t location) const {
    for (const std::size_t other : locations_[location].overlaps) {
        if (!locations_[other].stores.empty()) {
            return &locations_[other];
        }
    }
    return nullptr;
}

std::vector<StoreRecord*> Memory::readable(std::size_t number, const ThreadView& view) {
    const Location& location = locations_[number];
    const auto first = static_cast<long>(first_known(location, number, view));
    return {location.stores.rbegin(), location.stores.rend() - first};
}

void Memory::read(std::size_t location, const StoreRecord& store, std::memory_order order,
                  ThreadView& view) {
    view.now.know(location, &store);
    view.acquirable.join(store.released);
    if (acquires(order)) {
        view.now.join(store.released);
    }
    view.past.insert(store.past);
}

std::vector<std::size_t> Memory::places(std::size_t number, const ThreadView& view) {
    const Location& location = locations_[number];
    const std::size_t unknown = location.stores.size() - first_known(location, number, view);
    std::vector<std::size_t> places;
    for (std::size_t before = 0; before < unknown; ++before) {
        // Nothing comes between a store and the addition or swap that read it.
        if (!location.stores[location.stores.size() - 1 - before]->updated) {
            places.push_back(before);
        }
    }
    return places;
}

StoreRecord& Memory::store(std::size_t number, std::uint64_t value, std::memory_order order,
                           int thread, std::size_t before, const StoreRecord* behind,
                           ThreadView& view) {
    Location& location = locations_[number];
    StoreRecord& store = new_record();
    store.value = value;
    store.id = (static_cast<std::uint64_t>(thread) << 32) | view.stores++;
    store.generation = location.generation;
    store.past = view.past;
    std::size_t position = location.stores.size() - before;
    if (behind != nullptr) {
        position = behind->position + 1;
    }
    location.stores.insert(location.stores.begin() + static_cast<long>(position), &store);
    for (std::size_t i = position; i < location.stores.size(); ++i) {
        location.stores[i]->position = i;
    }
    view.now.step(thread);
    view.now.know(number, &store);
    store.released = releases(order) ? view.now : view.released;
    store.released.know(number, &store);
    if (behind != nullptr) {
        store.released.join(behind->released);
    }
    view.now.step(thread);
    if (position + 1 == location.stores.size()) {
        std::memcpy(reinterpret_cast<void*>(location.address), &value, location.size);
    }
    return store;
}

void Memory::fence(std::memory_order order, int thread, ThreadView& view) {
    if (acquires(order)) {
        view.now.join(view.acquirable);
    }
    if (releases(order)) {
        view.released = view.now;
        view.now.step(thread);
    }
}

void Memory::forget(std::uintptr_t address, std::size_t size) {
    for (std::uintptr_t word = address / 8; word * 8 < address + size; ++word) {
        const auto found = words_.find(word);
        if (found == words_.end()) {
            continue;
        }
        for (const Place& place : found->second) {
            Location& location = locations_[place.location];
            if (place.address < address + size && address < place.address + place.size &&
                !location.stores.empty()) {
                location.stores.clear();
                ++location.generation;
            }
        }
    }
}

}  // namespace symm::explore
