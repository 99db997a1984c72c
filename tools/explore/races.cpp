#include "tools/explore/races.hpp"

namespace symm::explore {

std::optional<AccessRecord> Races::access(std::size_t at, std::size_t size, AccessKind kind,
                                          int thread, const ThreadView& view, long step) {
    const auto bytes = static_cast<std::uint8_t>(((1U << size) - 1) << at % 8);
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
        } else if ((other.bytes & bytes) != 0 && (other.kind.store || kind.store) &&
                   !(other.kind.atomic && kind.atomic) &&
                   other.clock > view.now.steps_of(other.thread)) {
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
