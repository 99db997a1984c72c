#pragma once
/// \file
/// Starts the ranks of a run, and makes sure that all of them end.
///
/// \code
/// int main(...) { ... return run_ranks(options, [&](Rank& rank) { work(rank); }); }
/// \endcode
///
/// - `thread`: N threads of this process, each with its Rank.
/// - `process`: this process spawns N copies of itself, with its own arguments (spawn.hpp). A copy
///   finds its rank in the environment (SYMM_RANK), calls the same run_ranks() and runs the body
///   there. Copies die with the process that spawned them.
/// - Under a launcher (torchrun, mpirun, srun) this process already is one rank: see
///   launcher_environment.hpp.

#include <functional>
#include <string>
#include <vector>

#include "common/ranks/rank.hpp"

namespace symm {

/// How to start ranks.
struct RankOptions {
    int ranks = 2;  ///< 1 to kMaxRanks.
    RankMode mode = RankMode::kProcess;
    /// The arguments of rank processes, which run this program; entry 0 is not used. Empty: the
    /// arguments of this process.
    std::vector<std::string> command;
    /// The ordinal of a rank's GPU; empty: `rank % device_count()`.
    std::function<int(int rank)> device;
};

/// Runs `body` on every rank. Returns 0 when it returned on all of them.
///
/// If it starts the ranks itself, throws what went wrong: UsageError if a rank threw
/// UsageError or `ranks` is out of bounds; else std::runtime_error with the cause (throw_cause() in
/// rank_failure.hpp). In a process that is a rank itself (a copy, or started by a launcher), does
/// not throw what the body throws: reports the error, tells the other ranks and returns the exit
/// code 1, or 2 for UsageError. Such a process can call it once: the second call throws
/// std::logic_error. An empty body is std::invalid_argument.
int run_ranks(const RankOptions& options, const std::function<void(Rank&)>& body);

}  // namespace symm
