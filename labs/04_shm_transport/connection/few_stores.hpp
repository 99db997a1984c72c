#pragma once
/// \file
/// A FIFO in each direction with few stores: an open task. fifo.hpp stores a tail and a head for
/// each step.
///
/// `./lab explore both` runs every execution that the memory model allows.

#include "common/simt/pack.hpp"
#include "labs/04_shm_transport/connection/peer_step.hpp"

namespace symm {

/// Memory near one of two ranks, zeroed before the first call. Any use of it will do.
struct PairMemory {
    simt::Pack16 slot[4];
    std::uint64_t count[4];
};

/// Sends the `count` packs of `out` to the peer, which sends as many: into `in`. Afterwards `out`
/// may be overwritten. Earlier calls have sent `before` packs. One thread of rank 0 and one of rank
/// 1 call it. False if a wait gave up: then it is not called again.
__host__ __device__ inline bool send_and_receive(PairMemory* mine, PairMemory* peers, int rank,
                                                 std::uint64_t before, const simt::Pack16* out,
                                                 simt::Pack16* in, std::uint64_t count,
                                                 simt::Waiter& waiter) {
    // Up to four packs, then their number: the tail in count[0], and the head in count[1].
    PeerStep<simt::Order::kAcquire> head(0);
    PeerStep<simt::Order::kAcquire> tail(0);
    for (std::uint64_t i = 0, end = 0; i < count; i = end) {
        end = i + 4 < count ? i + 4 : count;
        const std::uint64_t steps = before + end;
        if (!head.wait_peer(waiter, &mine->count[1],
                            {simt::Wait::kFifoSpace, rank, 1 - rank, steps - 4})) {
            return false;
        }
        for (std::uint64_t k = i; k < end; ++k) {
            peers->slot[(before + k) % 4] = out[k];
        }
        post_peer<simt::Order::kRelease>(&peers->count[0], steps);
        if (!tail.wait_peer(waiter, &mine->count[0],
                            {simt::Wait::kFifoData, rank, 1 - rank, steps})) {
            return false;
        }
        for (std::uint64_t k = i; k < end; ++k) {
            in[k] = mine->slot[(before + k) % 4];
        }
        post_peer<simt::Order::kRelease>(&peers->count[1], steps);
    }
    return true;
}

}  // namespace symm
