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

enum class Algorithm { kAuto, kOneShot, kSentinel, kTwoShot };

/// `auto`, `oneshot`, `sentinel`, `twoshot`.
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
enum class TunerReason { kAsked, kSmall, kMiddle, kLarge, kNoWindow };

/// The most blocks and threads of a launch.
struct MostShapes {
    LaunchShape any;       ///< Of any algorithm.
    LaunchShape sentinel;  ///< The sentinel's kernel is smaller: more blocks may fit.
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
};

/// The reason as a sentence.
std::string describe(TunerReason reason, int ranks);

/// Bytes of a call up to which an algorithm is expected to be faster than the next: packets, then
/// the sentinel, then two shots. The sentinel's is smaller with more ranks, since in one shot each
/// rank sends all its data to every other. (On two H200s packets and the sentinel both take 2.8 us
/// for 16K.)
inline constexpr std::size_t kOneShotPreferred = 16 * 1024;
std::size_t sentinel_preferred(int ranks);
/// Up to which one shot is possible: what a bank holds of one sender's data.
inline constexpr std::size_t kOneShotLimit = 512 * 1024;
std::size_t sentinel_limit(int ranks);

/// Chooses for a call. If `asked` cannot do the call, throws std::invalid_argument and says what
/// can.
CallPlan plan_call(const CallSize& call, Algorithm asked, const MostShapes& most,
                   const TunerOverrides& overrides = {});

}  // namespace symm
