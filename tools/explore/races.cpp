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
    return earlier.thread != thread && (earlier.bytes & bytes) != 0 &&
           (earlier.kind.store || kind.store) && !(earlier.kind.atomic && kind.atomic) &&
           earlier.clock > view.now.steps_of(earlier.thread);
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
        if (other.thread == thread) {
            if (other.kind.store == kind.store && other.kind.atomic == kind.atomic &&
                other.bytes == bytes) {
                own = &other;
            }
        } else if (is_race(other, bytes, kind, thread, view)) {
            return other;
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
