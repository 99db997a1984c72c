#include "tools/explore/races.hpp"

#include <algorithm>

namespace symm::explore {
namespace {

std::uint8_t bytes_of(std::size_t at, std::size_t size) {
    return static_cast<std::uint8_t>(((1U << size) - 1) << at % 8);
}

}  // namespace

bool Races::is_race(const AccessRecord& earlier, std::uint8_t bytes, AccessKind kind, int thread,
                    const ThreadView& view) {
    if ((earlier.bytes & bytes) == 0 || !(earlier.kind.store || kind.store)) {
        return false;
    }
    const bool are_atomic = earlier.kind.atomic && kind.atomic;
    const bool is_before = earlier.clock <= view.now.steps_of(earlier.thread);
    if (earlier.kind.multicast != kind.multicast && is_before) {
        // A poll may see another thread's addition, and acquire it, by another address.
        return earlier.clock > View::steps_of(view.now.fenced, earlier.thread) &&
               (earlier.thread == thread || !are_atomic);
    }
    return !is_before && !are_atomic;
}

const AccessRecord* Races::find(std::size_t at, std::size_t size, AccessKind kind, int thread,
                                const ThreadView& view) const {
    if (at / 8 >= words_.size() || words_[at / 8].execution != execution_) {
        return nullptr;
    }
    const auto& earlier = words_[at / 8].accesses;
    const auto found = std::ranges::find_if(earlier, [&](const AccessRecord& one) {
        return is_race(one, bytes_of(at, size), kind, thread, view);
    });
    return found == earlier.end() ? nullptr : &*found;
}

std::optional<AccessRecord> Races::access(std::size_t at, std::size_t size, AccessKind kind,
                                          int thread, const ThreadView& view, long step) {
    const std::uint8_t bytes = bytes_of(at, size);
    if (at / 8 >= words_.size()) {
        words_.resize(at / 8 + 1);
    }
    Word& word = words_[at / 8];
    auto& earlier = word.accesses;
    if (word.execution != execution_) {
        word.execution = execution_;
        earlier.clear();
    }
    AccessRecord* own = nullptr;
    for (AccessRecord& other : earlier) {
        if (is_race(other, bytes, kind, thread, view)) {
            return other;
        }
        if (other.thread == thread && other.kind == kind && other.bytes == bytes) {
            own = &other;
        }
    }
    const AccessRecord record{thread, kind, bytes, view.now.steps_of(thread), step};
    if (own != nullptr) {
        *own = record;
    } else {
        earlier.push_back(record);
    }
    return std::nullopt;
}

}  // namespace symm::explore
