#pragma once
/// \file
/// The tuner: which algorithm a call takes, with how many blocks, and why.
///
/// Its choice depends only on what is the same on all ranks (type, count, whether the buffers lie
/// in windows, and the table of tuning_table.hpp), so that all ranks choose the same.

#include <cstddef>
#include <string>
#include <string_view>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/tuning/tuning_table.hpp"

namespace symm {

/// What a call is.
struct CallSize {
    DataType type;
    std::size_t count;
    int ranks;
    bool in_windows;  ///< Input and output both lie in windows; of one half, the larger buffer.
    Collective collective = Collective::kAllReduce;  ///< Or a half: `count` is one part's.
};

/// Why the tuner chose as it did.
enum class TunerReason {
    kAsked,
    kSmall,
    kMiddle,
    kPushed,
    kLarge,
    kFewBlocks,
    kLargest,
    kNoWindow,
    kLargeHalf
};

/// What the ranks' devices allow.
struct MostShapes {
    LaunchShape any;       ///< The most blocks and threads of a launch, of any algorithm.
    LaunchShape sentinel;  ///< Kernels with the sentinel are smaller: more blocks may fit.
    bool copy_engine;      ///< Calls by the copy engine: each rank has a device of its own.
};

/// What a user wants instead of the tuner's choice: SYMM_ALGO, SYMM_BLOCKS and SYMM_THREADS.
struct TunerOverrides {
    Algorithm algorithm = Algorithm::kAuto;  ///< Where a call says kAuto.
    unsigned blocks = 0;                     ///< 0: as the tuner says.
    unsigned threads = 0;                    ///< 0: as the tuner says.
    static TunerOverrides from_environment();
};

/// What the tuner chooses by. The table and `most` are the same on all ranks.
struct Tuner {
    TuningTable table;
    MostShapes most;
    TunerOverrides overrides;
};

/// What the tuner chose.
struct CallPlan {
    Algorithm algorithm;  ///< Never kAuto.
    LaunchShape shape;
    TunerReason reason;
    std::size_t limit;  ///< Of the table, in bytes: the size up to which, or above which, it chose.
    /// The most elements of one launch: a call of more takes several, one after the other.
    std::size_t piece;
};

/// The reason as a sentence.
std::string describe(const CallPlan& plan, int ranks);

/// What a bank holds of one sender's data, in bytes: the most of one launch.
inline constexpr std::size_t kOneShotLimit = 512 * 1024;
std::size_t sentinel_limit(int ranks);
std::size_t push_limit(int ranks);

/// Chooses for a call. If `asked` cannot do the call, throws std::invalid_argument and says what
/// can.
CallPlan plan_call(const CallSize& call, Algorithm asked, const Tuner& tuner);

}  // namespace symm
