#pragma once
/// \file
/// Turns: at any time each rank sends to one peer, and each rank receives from one peer. In turn t
/// rank r sends to rank (r + s) mod n, where s = t mod (n - 1) + 1. Turns order no data: one that
/// begins too early is slower, not wrong. chunks/README.md has the reasons.
///
/// | who                                            | does                              | to what             | order   | why |
/// |------------------------------------------------|-----------------------------------|---------------------|---------|-----|
/// | one thread of each block, at the end of turn t | counts its block                  | its own `ended[t]`  | relaxed | only the number matters |
/// | the one that counts four fifths of the blocks  | stores 1                          | `begin[t + 1]` of the rank that sends to this receiver in turn t + 1 | relaxed | no data depends on it |
/// | the one that counts the last block             | stores 0 into both words          | its own `begin[t]` and `ended[t]` | relaxed | the next call begins with zeros |
/// | one thread of each block, before turn t + 1    | polls until the word is 1         | its own `begin[t + 1]` | relaxed | |

#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/waiter.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// Each rank's memory for turns: symmetric, zeroed before the first use.
struct TurnsMemory {
    static constexpr int kMost = 2 * (kMaxBarrierRanks - 1);  ///< Turns of a call.

    std::uint32_t begin[kMost];  ///< Written by peers: turn t may begin.
    std::uint32_t ended[kMost];  ///< How many of this rank's blocks have ended turn t.
};

/// A block's turns in one call, counted from 0. All blocks of all ranks take the same turns.
class Turns {
public:
    /// `turns`: of the call, at most TurnsMemory::kMost. Two ranks have one link each way, and need
    /// not wait; nor does anybody if not `paced`.
    __host__ __device__ Turns(const simt::ThreadBlock& block, SymmetricPointer<TurnsMemory> memory,
                              int rank, int ranks, int turns, bool paced)
        : memory_(memory),
          blocks_(block.dim_blocks()),
          rank_(rank),
          ranks_(ranks),
          turns_(turns),
          paced_(paced && ranks > 2) {}

    /// The rank to which this one sends in this turn.
    __host__ __device__ int peer() const { return receiver_of(rank_, now_); }

    /// Whether the block must wait before this turn.
    __host__ __device__ bool waits() const { return paced_ && now_ > 0; }

    /// Waits until this turn may begin. One thread of the block calls it. Returns false if the wait
    /// gave up.
    __host__ __device__ bool wait(simt::Waiter& waiter) const {
        return wait_signal<simt::Order::kRelaxed>(
            waiter, &memory_.of(rank_)->begin[now_],
            {simt::Wait::kTurn, rank_, sender_to(peer(), now_ - 1), 1});
    }

    /// Ends this turn for the block. One thread calls it, after its own last store.
    __host__ __device__ void end() const {
        if (!paced_) {
            return;
        }
        TurnsMemory& own = *memory_.of(rank_);
        const std::uint32_t ended =
            simt::fetch_add(&own.ended[now_], std::uint32_t{1}, simt::Order::kRelaxed) + 1;
        if (ended == blocks_ - blocks_ / 5 && now_ + 1 < turns_) {
            const int next = sender_to(peer(), now_ + 1);
            signal<simt::Order::kRelaxed>(&memory_.of(next)->begin[now_ + 1], 1);
        }
        if (ended == blocks_) {
            simt::store(&own.begin[now_], std::uint32_t{0}, simt::Order::kRelaxed);
            simt::store(&own.ended[now_], std::uint32_t{0}, simt::Order::kRelaxed);
        }
    }

    /// All threads of the block go on to the next turn.
    __host__ __device__ void next() { ++now_; }

private:
    __host__ __device__ int distance(int turn) const { return turn % (ranks_ - 1) + 1; }
    __host__ __device__ int receiver_of(int sender, int turn) const {
        return (sender + distance(turn)) % ranks_;
    }
    __host__ __device__ int sender_to(int receiver, int turn) const {
        return (receiver + ranks_ - distance(turn)) % ranks_;
    }

    SymmetricPointer<TurnsMemory> memory_;
    unsigned blocks_;
    int rank_;
    int ranks_;
    int turns_;
    bool paced_;
    int now_ = 0;
};

}  // namespace symm
