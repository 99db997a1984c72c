#pragma once
/// \file
/// Ranks that are processes, spawned by this one.
///
/// The process that spawns the ranks, their parent, makes all sockets first: the connections
/// between ranks, and one connection between itself and each rank. A rank inherits its connection
/// to the parent. Over it the rank receives its connections to other ranks, and reports its
/// failure. So no other process can connect, nothing is on disk, and when a rank dies its sockets
/// close, which the others notice.

#include <optional>
#include <string>
#include <vector>

#include "common/bootstrap/socket_bootstrap.hpp"
#include "common/ranks/rank_failure.hpp"

namespace symm {

/// Spawns this program `ranks` times with the arguments in `command`, from entry 1 on (empty: its
/// own arguments), waits for all, and returns what went wrong. A copy that still runs some seconds
/// after another has failed is killed. So is a copy that is stopped (SIGSTOP) for some seconds
/// longer than SYMM_TIMEOUT. If a signal ends this process, the Linux kernel kills the copies
/// (die_with_parent()).
std::vector<RankFailure> spawn_ranks(int ranks, const std::vector<std::string>& command);

/// A spawned rank's own side.
struct SpawnedRank {
    int rank = 0;
    int size = 1;
    UniqueFd parent;  ///< To the process that spawned it.

    /// Receives the connections to the other ranks. Can be called once.
    Connections connections() const;
};

/// Which rank this process is, if spawn_ranks() started it; else nothing. From then on the process
/// dies with its parent. Throws UsageError if its variables make no sense.
[[nodiscard]] std::optional<SpawnedRank> spawned_rank();

}  // namespace symm
