#pragma once
/// \file
/// A count of steps that one side stores and the other side polls: NCCL's `postPeer` and
/// `waitPeer`.
///
/// 1. post_peer() stores n in the counter near the peer. With kRelease, a peer that waits for n
///    with kAcquire sees what the poster did before. A relaxed post is faster, but orders nothing.
/// 2. wait_peer() polls the counter near itself until it is at least n. It keeps the count that it
///    saw last, and polls only when that is too small: a poll may be a load over a bus, and the
///    acquire that saw count n covers all steps up to n. In a long wait it looks at the abort flag
///    and the clock at intervals, and pauses between polls (simt::Waiter).
/// 3. Counts only grow, and are compared by their difference, so they may wrap.

#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/waiter.hpp"

namespace symm {

/// The waiting side, as one thread sees it.
template <simt::Order kWait>
class PeerStep {
public:
    /// `seen` is a count that has already been reached.
    __host__ __device__ explicit PeerStep(std::uint64_t seen) : seen_(seen) {}

    __host__ __device__ std::uint64_t seen() const { return seen_; }

    __host__ __device__ bool has_reached(std::uint64_t needed) const {
        return static_cast<std::int64_t>(seen_ - needed) >= 0;
    }

    /// Waits until `*counter` has reached `waiting.expected`. False if the wait gave up.
    __host__ __device__ bool wait_peer(simt::Waiter& waiter, const std::uint64_t* counter,
                                       const simt::Waiting& waiting) {
        if (has_reached(waiting.expected)) {
            return true;
        }
        return waiter.until(waiting, [&](std::uint64_t& seen) {
            seen = seen_ = simt::load(counter, kWait);
            return has_reached(waiting.expected);
        });
    }

private:
    std::uint64_t seen_;
};

/// The posting side: tells the thread that polls `counter` that `step` steps are done.
template <simt::Order kPost>
__host__ __device__ void post_peer(std::uint64_t* counter, std::uint64_t step) {
    simt::store(counter, step, kPost);
}

}  // namespace symm
