#pragma once
/// \file
/// Ranks that are processes: started, watched, and gone when run_ranks() returns.

#include <string>
#include <vector>

#include "common/ranks/rank_failure.hpp"

namespace symm {

/// Starts `ranks` copies of `command` (empty: this program and its arguments), waits for all, and
/// returns what went wrong. Once one has failed, the others have the time that SYMM_TIMEOUT allows
/// any wait, and a little more, to find out and end; then they are killed. SIGINT, SIGTERM and
/// SIGHUP end the ranks first and this process then.
std::vector<RankFailure> run_copies(int ranks, const std::vector<std::string>& command);

}  // namespace symm
