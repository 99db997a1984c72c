#pragma once
/// \file
/// Data races: two accesses of the same byte, at least one of them a plain one and at least one a
/// store, of which neither is known to come before the other. Or two of which one comes before the
/// other, and one is by a multicast address, without a fence_alias() between them: of one thread
/// also if both are atomic.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/explore/model.hpp"

namespace symm::explore {

struct AccessKind {
    bool store;
    bool atomic;
    bool multicast = false;
    bool operator==(const AccessKind&) const = default;
};

/// An access as the log has it.
struct AccessRecord {
    int thread;
    AccessKind kind;
    std::uint8_t bytes;   ///< A bit for each of eight.
    std::uint32_t clock;  ///< Its thread's steps.
    long step;            ///< In the log.
};

class Races {
public:
    /// Begins an execution.
    void clear() { ++execution_; }
    /// Records an access of at most 8 bytes of one word, `at` bytes after the start of the scene,
    /// and returns an earlier one with which it is a race.
    std::optional<AccessRecord> access(std::size_t at, std::size_t size, AccessKind kind,
                                       int thread, const ThreadView& view, long step);

    /// An earlier access with which that is a race, or null.
    const AccessRecord* find(std::size_t at, std::size_t size, AccessKind kind, int thread,
                             const ThreadView& view) const;

private:
    static bool is_race(const AccessRecord& earlier, std::uint8_t bytes, AccessKind kind,
                        int thread, const ThreadView& view);

    struct Word {
        std::uint64_t execution = 0;  ///< In which `accesses` were made.
        std::vector<AccessRecord> accesses;
    };
    std::vector<Word> words_;
    std::uint64_t execution_ = 0;
};

}  // namespace symm::explore
