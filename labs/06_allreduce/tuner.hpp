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

enum class Algorithm { kAuto, kOneShot, kSentinel, kTwoShot, kCopy };

/// `auto`, `oneshot`, `sentinel`, `twoshot`, `copy`.
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
enum class TunerReason { kAsked, kSmall, kMiddle, kLarge, kLargest, kNoWindow };

/// What the ranks' devices allow.
struct MostShapes {
    LaunchShape any;       ///< The most blocks and threads of a launch, of any algorithm.
    LaunchShape sentinel;  ///< The sentinel's kernel is smaller: more blocks may fit.
    bool copy_engine;      ///< Calls by the copy engine: each rank has a device of its own.
};

/// What a user wants instead of the tuner's choice: SYMM_ALGO, SYMM_BLOCKS and SYMM_THREADS.
struct TunerOverrides {
    Algorithm algorithm = Algorithm::kAuto;  ///< Where a call says kAuto.
    unsigned blocks = 0;                     ///< 0: as the tuner says.
    unsigned threads = 0;                    ///< 0: as the tuner says.
    static TunerOverrides from_environment();
};

/// What the tuner chose.
struct CallPlan {
    Algorithm algorithm;  ///< Never kAuto.
    LaunchShape shape;
    TunerReason reason;
    /// The most elements of one launch: a call of more takes several, one after the other.
    std::size_t piece;
};

/// The reason as a sentence.
std::string describe(TunerReason reason, DataType type, int ranks);

/// Bytes of a call up to which an algorithm is expected to be faster than the next: packets, then
/// the sentinel (floating types only), two shots, and two shots by the copy engine. In one shot
/// each rank sends all its data to every other, so with more ranks the limits are lower.
std::size_t one_shot_preferred(DataType type, int ranks);
std::size_t sentinel_preferred(int ranks);
std::size_t two_shot_preferred(int ranks);
/// What a bank holds of one sender's data, in bytes: the most of one launch.
inline constexpr std::size_t kOneShotLimit = 512 * 1024;
std::size_t sentinel_limit(int ranks);

/// Chooses for a call. If `asked` cannot do the call, throws std::invalid_argument and says what
/// can.
CallPlan plan_call(const CallSize& call, Algorithm asked, const MostShapes& most,
                   const TunerOverrides& overrides = {});

}  // namespace symm
