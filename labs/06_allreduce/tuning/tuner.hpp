#pragma once
/// \file
/// The tuner: which algorithm a call takes, with how many blocks, and why.
///
/// Its choice depends only on values that are the same on all ranks (type, count, whether the
/// buffers lie in windows, and the table of tuning_table.hpp), so that all ranks choose the same.

#include <cstddef>
#include <string>
#include <string_view>

#include "labs/06_allreduce/algorithms/algorithm.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"
#include "labs/06_allreduce/tuning/tuning_table.hpp"

namespace symm {

/// The limits of the ranks' devices.
struct MostShapes {
    LaunchShape any;    ///< The most blocks and threads of a launch, of any algorithm.
    LaunchShape small;  ///< Of small kernels (AlgorithmRow).
    bool own_devices;   ///< Each rank has a device of its own.
    bool alone;         ///< This rank has its device to itself: a communicator holds all of it.

    const LaunchShape& of(const AlgorithmRow& row) const {
        return row.cost.small_kernels ? small : any;
    }
};

/// A user's overrides of the tuner's choice: SYMM_ALGO, SYMM_BLOCKS and SYMM_THREADS.
struct TunerOverrides {
    Algorithm algorithm =
        Algorithm::kAuto;  ///< If a call passes kAuto, and it makes the collective.
    unsigned blocks = 0;   ///< 0: the tuner's choice.
    unsigned threads = 0;  ///< 0: the tuner's choice.
    static TunerOverrides from_environment();
};

/// The tuner's choice.
struct CallPlan {
    Algorithm algorithm;  ///< Never kAuto.
    const AlgorithmRow* row;
    LaunchShape shape;
    /// The most elements of one launch: a larger call takes several, one after the other.
    std::size_t piece;
    std::string_view why;  ///< A format: see describe().
    std::size_t up_to;     ///< The algorithm's limits in the table, in bytes.
    std::size_t above;
};

/// Why the plan was made, as a sentence.
std::string describe(const CallPlan& plan, int ranks);

/// What the tuner knows. The same on all ranks.
struct Tuner {
    TuningTable table;
    int ranks;
    MostShapes most;
    TunerOverrides overrides;

    /// Plans a call. `in_windows`: the buffers that peers use lie in windows. If `asked` cannot
    /// make the call, throws std::invalid_argument that names the alternatives.
    CallPlan plan(const Call& call, bool in_windows, Algorithm asked) const;
    /// Whether calls with buffers of up to `bytes` bytes, in windows, may take the algorithm.
    [[nodiscard]] bool may_take(const AlgorithmRow& row, std::size_t bytes) const;
};

}  // namespace symm
