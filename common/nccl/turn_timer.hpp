#pragma once
/// \file
/// Times calls of ours and of NCCL's alike, in turn.

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "common/cuda/stream.hpp"

namespace symm {

class Rank;

/// How calls are timed: `iterations` between two events, launched one by one. With `graph_launches`
/// they are captured as a graph instead, which is launched that many times between the events.
struct TurnTimer {
    Rank& rank;
    const Stream& stream;
    int iterations;
    int graph_launches;
    /// Waits for the stream; an error names `what`.
    std::function<void(std::string_view what)> synchronize;
    int warm_ups = 1;  ///< At least 1.

    /// Makes `warm_ups` calls untimed, then runs `prepare`, then times the calls. Returns the time
    /// of one call in microseconds, the slowest rank's. Collective.
    double time(const std::function<void()>& call, const std::function<void()>& prepare) const;
};

/// The time of `step`, which all ranks begin together: the slowest rank's, in milliseconds.
/// Collective.
double time_together(Rank& rank, const std::function<void()>& step);

/// Lets candidates take turns, `rounds` times: `turn(c)` makes one of candidate c and returns its
/// time. Returns the median of each candidate's times.
std::vector<double> medians_in_turn(std::size_t candidates, int rounds,
                                    const std::function<double(std::size_t c)>& turn);

}  // namespace symm
