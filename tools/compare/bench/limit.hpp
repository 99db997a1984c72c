#pragma once
/// \file
/// The least time that an AllReduce could take on this machine.

#include <cstddef>
#include <optional>

#include "common/ranks/rank.hpp"
#include "labs/05_device_prims/reduction/collective.hpp"

namespace symm {

/// The speed of the links, measured by labs 02 and 05, and of launches.
struct Limit {
    double packet = 0;  ///< One packet's way from a kernel to another, in microseconds.
    double launch = 0;  ///< An empty kernel, launched as the calls are, in microseconds.
    double rate = 0;    ///< From each rank to the next by copy engines, all at once, in GB/s.

    /// The limit of a call in microseconds: one packet's way, and 2(n-1)/n of the bytes at that
    /// rate, which each rank has to send if the switch does not help. Half of these bytes if the
    /// call is one half of an AllReduce.
    double call(std::size_t bytes, int ranks, Collective collective) const;
    /// The limit of the smallest call in microseconds: one packet's way, and a launch.
    double smallest() const { return packet + launch; }
};

/// Measures the limit. Collective; only rank 0 gets it. Empty if times are meaningless (emulated
/// GPUs), or if not every rank has a GPU of its own that rank 0 sees.
/// `graph_launches`: how calls are launched (TurnTimer).
std::optional<Limit> measure_limit(Rank& rank, int graph_launches);

}  // namespace symm
