#pragma once
/// \file
/// AllReduce in two shots by the copy engine, for the largest sizes. Copies make both trips,
/// through scratch memory (peer_slots.hpp), in pieces; kernels add up and put away. Rank r, for
/// piece k:
///
/// 1. push: copies its piece of part p into a slot of rank p, for all p.
/// 2. reduce: tells the peers so, waits until theirs are there, and adds up piece k of part r.
/// 3. send: copies the sums into a slot of each peer.
/// 4. unpack: tells that peer so, waits for the peer's sums, and copies them to its own output.

#include <vector>

#include "common/cuda/event.hpp"
#include "common/cuda/gpu.hpp"
#include "common/cuda/stream.hpp"
#include "labs/06_allreduce/algorithms/copy/copy_order.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/slot_memory.hpp"

namespace symm {

/// A rank's side: the streams of its copies.
class Copy {
public:
    /// Uses the slots. All must outlive it.
    Copy(SymmetricPointer<CopyMemory> memory, const SlotMemory& slots);

    /// Throws std::invalid_argument if a call on the stream would not be captured, but an earlier
    /// one is being captured.
    void require_turn(CUstream stream) const;
    /// Queues a call on the stream, which has its turn. Throws CudaError.
    void queue(CUstream stream, LaunchShape shape, const CopyCall& call);

private:
    SymmetricPointer<CopyMemory> memory_;
    PeerSlots inputs_;
    PeerSlots sums_;
    Trust trust_;
    Stream input_stream_;
    Stream sum_stream_;
    std::vector<Event> events_;  ///< By CopyEvent.
};

/// Queue the kernels. Throw CudaError.
void launch_end_of_round(CUstream stream, const EndOfRound& end);
void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType type,
                         const ReducePieceParams& call);
void launch_unpack(CUstream stream, LaunchShape shape, const Unpack& unpack);

}  // namespace symm
