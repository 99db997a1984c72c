#pragma once
/// \file
/// The tuner: which algorithm a call takes, with how many blocks, and why.
///
/// Its choice depends only on values that are the same on all ranks (type, count, whether the
/// buffers lie in windows, and the table of tuning_table.hpp), so that all ranks choose the same.

#include <cstddef>
#include <string>
#include <string_view>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/tuning/tuning_table.hpp"

namespace symm {

/// The properties of a call.
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
    kChunked,
    kFewBlocks,
    kLargest,
    kNoWindow,
    kLargeHalf,
    kLargestHalf
};

/// The limits of the ranks' devices.
struct MostShapes {
    LaunchShape any;       ///< The most blocks and threads of a launch, of any algorithm.
    LaunchShape sentinel;  ///< Kernels with the sentinel are smaller: more blocks may fit.
    bool copy_engine;      ///< Calls by the copy engine: each rank has a device of its own.
};

/// A user's overrides of the tuner's choice: SYMM_ALGO, SYMM_BLOCKS and SYMM_THREADS.
struct TunerOverrides {
    Algorithm algorithm = Algorithm::kAuto;  ///< If a call passes kAuto.
    unsigned blocks = 0;                     ///< 0: the tuner's choice.
    unsigned threads = 0;                    ///< 0: the tuner's choice.
    static TunerOverrides from_environment();
};

/// The tuner's inputs. The table and `most` are the same on all ranks.
struct Tuner {
    TuningTable table;
    MostShapes most;
    TunerOverrides overrides;
};

/// The tuner's choice.
struct CallPlan {
    Algorithm algorithm;  ///< Never kAuto.
    LaunchShape shape;
    TunerReason reason;
    std::size_t limit;  ///< The table's, in bytes: the size up to which, or above which, it chose.
    /// The most elements of one launch: a larger call takes several, one after the other.
    std::size_t piece;
};

/// The reason as a sentence.
std::string describe(const CallPlan& plan, int ranks);

/// A bank's room for one sender's data, in bytes: the most of one launch.
inline constexpr std::size_t kOneShotLimit = 512 * 1024;
std::size_t sentinel_limit(int ranks);
std::size_t push_limit(int ranks);
/// The most bytes of a call that one launch can reduce in chunks.
std::size_t chunks_limit(int ranks);
/// The number of packs in a chunk: the same on all ranks, even if their blocks have different
/// numbers of threads.
unsigned chunk_packs(int ranks);

/// Whether calls of up to `bytes` bytes may use the scratch memory of chunks and the copy engine.
bool may_use_chunks_or_copy(std::size_t bytes, int ranks, const Tuner& tuner);

/// Chooses for a call. If `asked` cannot do the call, throws std::invalid_argument that names the
/// alternatives.
CallPlan plan_call(const CallSize& call, Algorithm asked, const Tuner& tuner);

}  // namespace symm
