#pragma once
/// \file
/// Checked AllReduce calls over several machines, run by the programs with any rail.

#include <memory>

#include "common/ranks/rank.hpp"
#include "common/sys/bytes.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"
#include "symm/nodes/rail.hpp"

namespace symm {

/// The calls that a program makes.
struct NodeCalls {
    Arithmetic arithmetic;
    ByteRange sizes;
    std::size_t factor;  ///< From one size to the next.
    bool in_place;
    int iterations = 1;  ///< Checked calls of each size.
};

/// Makes the calls on one rank, checks every element, and prints a line for each on rank 0 of
/// machine 0. Throws if a result is wrong.
void make_calls(Rank& inside, std::unique_ptr<Rail> rail, const NodeCalls& calls);

/// The same on machines of `ranks / machines` ranks each, which are groups of threads. Throws
/// UsageError if they cannot be equal.
int run_thread_nodes(int machines, int ranks, const NodeCalls& calls);

}  // namespace symm
