#pragma once
/// \file
/// Which algorithm a call takes, with how many blocks, and why.

#include <cstddef>
#include <string>
#include <string_view>

#include "labs/06_allreduce/data_type.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {

enum class Algorithm { kAuto, kOneShot, kTwoShot };

/// `auto`, `oneshot`, `twoshot`.
std::string_view name_of(Algorithm algorithm);
/// The algorithm by its name. Throws UsageError for another.
Algorithm algorithm(std::string_view name);

/// What a device can keep running at once, for one rank.
struct DeviceShape {
    unsigned blocks;   ///< Blocks of `threads` threads, resident together.
    unsigned threads;  ///< Threads a block.
    /// From a device's attributes; `sharing` ranks of one process run there at the same time.
    /// Throws std::invalid_argument where not even a block each can be resident.
    static DeviceShape of(int device, int sharing);
};

/// What a call is.
struct CallSize {
    DataType type;
    std::size_t count;
    int ranks;
    bool windows;  ///< Input and output both lie in windows.
};

/// What becomes of it.
struct Plan {
    Algorithm algorithm;  ///< Never kAuto.
    Shape shape;
    std::string reason;  ///< For people: why this algorithm.
};

/// Payload bytes up to which one shot is expected to be faster than two, and up to which it is
/// possible. The first falls with the ranks, since each sends everything to each other rank.
std::size_t one_shot_preferred(int ranks);
inline constexpr std::size_t kOneShotLimit = 512 * 1024;

/// Chooses. Throws std::invalid_argument where `asked` cannot do it, saying what can.
Plan plan(const CallSize& call, Algorithm asked, const DeviceShape& device);

}  // namespace symm
