#pragma once
/// \file
/// The tuner: which algorithm a call takes, with how many blocks, and why.
///
/// Its choice depends only on what is the same on all ranks (type, count, whether the buffers lie
/// in windows), so that all ranks choose the same.

#include <cstddef>
#include <string>
#include <string_view>

#include "labs/05_device_prims/data_type.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {

enum class Algorithm { kAuto, kOneShot, kTwoShot };

/// `auto`, `oneshot`, `twoshot`.
std::string_view name_of(Algorithm algorithm);
/// The algorithm by its name. Throws UsageError for another.
Algorithm algorithm_named(std::string_view name);

/// What a call is.
struct CallSize {
    DataType type;
    std::size_t count;
    int ranks;
    bool windows;  ///< Input and output both lie in windows.
};

/// Why the tuner chose as it did.
enum class TunerReason { kAsked, kSmall, kLarge, kNoWindow };

/// What the tuner chose.
struct CallPlan {
    Algorithm algorithm;  ///< Never kAuto.
    LaunchShape shape;
    TunerReason reason;
};

/// The reason as a sentence.
std::string describe(TunerReason reason, int ranks);

/// Payload bytes up to which one shot is expected to be faster than two shots, and up to which it
/// is possible. The first is smaller with more ranks, since each rank sends all its data to every
/// other.
std::size_t one_shot_preferred(int ranks);
inline constexpr std::size_t kOneShotLimit = 512 * 1024;

/// Chooses for a call, with no more blocks and threads than `most`. If `asked` cannot do the call,
/// throws std::invalid_argument and says what can.
CallPlan plan_call(const CallSize& call, Algorithm asked, const LaunchShape& most);

}  // namespace symm
