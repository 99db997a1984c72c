#pragma once
/// \file
/// Machines that are groups of threads of one process: to learn and to test without a cluster.

#include <functional>
#include <memory>

#include "common/ranks/ranks.hpp"
#include "symm/nodes/rail.hpp"

namespace symm {

/// The work of each rank of each machine: given its rank inside the machine, and its rail.
using OnNode = std::function<void(Rank& inside, std::unique_ptr<Rail> rail)>;

/// Runs `body` on `ranks` ranks of each of `machines` machines, all of them threads of this
/// process. Passes on exceptions, and throws UsageError if a launcher started this process as a
/// rank.
int run_on_nodes(int machines, int ranks, const OnNode& body);

}  // namespace symm
