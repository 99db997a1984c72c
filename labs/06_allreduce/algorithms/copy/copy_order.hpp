#pragma once
/// \file
/// The order of a round by the copy engine: README.md's table as a list of steps. Copy queues them,
/// and the explorer's scenes run them in every order that the streams and events allow.

#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

/// A rank's streams.
enum class CopyStream { kCaller, kInputs, kSums };

/// The events by which they wait for each other. kSummed has one for each piece.
enum CopyEvent { kBegun, kPushed, kSent, kSummed };

/// What a rank queues on a stream.
struct CopyStep {
    enum class What {
        kRecord,  ///< `event`: when the stream's earlier steps have ended.
        kWait,    ///< For `event`, as it was recorded last: the stream's later steps do.
        kPush,    ///< Copies `piece` of rank `to`'s part of the input to that rank.
        kReduce,  ///< Adds up `piece` of this rank's part.
        kKeep,    ///< Copies this rank's part of the input to its own output.
        kSend,    ///< Copies `piece` of this rank's part of the output to rank `to`.
        kUnpack,  ///< Copies `piece` of rank `from`'s part from the slot to the output.
        kEnd,     ///< Ends the round.
    };
    What what;
    CopyStream stream;
    int event = 0;
    int piece = 0;
    int to = 0;
    int from = 0;
};

/// Calls `queue` with each step of a rank's round, in the order in which the host queues them.
template <class Queue>
void for_copy_steps(Collective collective, int rank, int ranks, int pieces, const Queue& queue) {
    using enum CopyStep::What;
    using enum CopyStream;
    const bool reduces = collective != Collective::kAllGather;
    const bool gathers = collective != Collective::kReduceScatter;
    const auto order = [&](CopyStream earlier, int event, CopyStream later) {
        queue(CopyStep{kRecord, earlier, event});
        queue(CopyStep{kWait, later, event});
    };
    order(kCaller, kBegun, reduces ? kInputs : kSums);
    for (int k = 0; k < pieces && reduces; ++k) {
        for (int step = 1; step < ranks; ++step) {
            queue(CopyStep{kPush, kInputs, 0, k, (rank + step) % ranks});
        }
        order(kInputs, kPushed, kCaller);
        queue(CopyStep{kReduce, kCaller, 0, k});
        queue(CopyStep{kRecord, kCaller, kSummed + k});
    }
    if (!reduces) {
        queue(CopyStep{kKeep, kCaller});
    }
    for (int k = 0; k < pieces && gathers; ++k) {
        if (reduces) {
            queue(CopyStep{kWait, kSums, kSummed + k});
        }
        for (int step = 1; step < ranks; ++step) {
            const int to = (rank + step) % ranks;
            queue(CopyStep{kSend, kSums, 0, k, to});
            order(kSums, kSent, kCaller);
            queue(CopyStep{kUnpack, kCaller, 0, k, to, (rank + ranks - step) % ranks});
        }
    }
    queue(CopyStep{kEnd, kCaller});
}

}  // namespace symm
