#pragma once
/// \file
/// Ranks that are processes, spawned by this one.
///
/// The process that spawns them makes all sockets first: the connections among the ranks, and for
/// each rank one to itself. A rank inherits the latter. Through it the rank receives its
/// connections, and reports its failure. So no other process can connect, nothing is on disk, and
/// when a rank dies its sockets close, which the others notice.

#include <optional>
#include <string>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/ranks/rank_failure.hpp"

namespace symm {

/// Spawns `ranks` copies of `command` (empty: this program and its arguments), waits for all, and
/// returns what went wrong. A copy that is still there some seconds after another has failed is
/// killed, and so is one that is stopped (SIGSTOP) for longer than SYMM_TIMEOUT. Where a signal
/// ends this process, the kernel kills the copies (die_with_parent()).
std::vector<RankFailure> spawn_ranks(int ranks, const std::vector<std::string>& command);

/// A spawned rank's own side.
struct SpawnedRank {
    int rank = 0;
    int size = 1;
    UniqueFd parent;  ///< To the process that spawned it.

    /// The connections to the other ranks. Once.
    Connections connections() const;
};

/// The place of this process where spawn_ranks() started it, nothing elsewhere. From here on it
/// dies with its parent. Throws UsageError where the variables make no sense.
std::optional<SpawnedRank> spawned_rank();

}  // namespace symm
