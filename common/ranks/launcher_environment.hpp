#pragma once
/// \file
/// Which rank this process is, if a launcher started it as a rank: kLaunchers in the .cpp file has
/// the variables of each.
///
/// Memory is shared within one host here, so all ranks have to be on one. SYMM_LAUNCHER=none makes
/// a program start its own ranks, whatever else the environment says. An empty variable counts as
/// one that is not set.

#include <optional>
#include <string>

namespace symm {

/// A rank's place in a run.
struct Placement {
    int rank = 0;
    int size = 1;
    std::string launcher;   ///< `torchrun`, ...
    std::string variables;  ///< `RANK=0 and WORLD_SIZE=2`, for errors.
    /// The name under which the ranks of this run, and no others, meet. Made of SYMM_BOOTSTRAP
    /// if that is set. Else from the process that started the ranks, and from what the launcher
    /// says about the job (ports, job and step numbers): no two runs have all of that in common.
    /// An interactive shell starts many runs, and a process outside of this PID namespace is not
    /// known: with neither SYMM_BOOTSTRAP nor a word about the job, that is bad usage.
    std::string name;
};

/// The place that a launcher gives this process; nothing if none started it. Throws UsageError
/// for numbers that make no sense, naming the variable, and for a run without a name.
[[nodiscard]] std::optional<Placement> placement_from_environment();

}  // namespace symm
