#pragma once
/// \file
/// Scratch memory with a slot for each peer's part, which algorithms share, and how a rank tells
/// its peers that it gave up waiting. Every call ends with a barrier, at which each rank arrives
/// when it has read its slots: so at the start of a call they are free, unless a rank gave up in
/// the barrier. copy/README.md has the reasons.
///
/// | who                        | does                                                       | why |
/// |----------------------------|------------------------------------------------------------|-----|
/// | a rank whose wait gave up  | stores 1 into `gave_up[r]` of all peers, before its next copies run | they may have used what its copies overwrite |
/// | a rank that passes the end | fails the call if a peer told it so                         | it has read its slots before |

#include <cstddef>
#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/waiter.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {

/// All ranks' slots: `[ranks - 1][packs]` on each.
struct PeerSlots {
    SymmetricPointer<simt::Pack16> memory;
    std::size_t packs;  ///< A slot has this many.

    /// The slot of rank `sender` in the memory of rank `receiver`.
    __host__ __device__ simt::Pack16* of(int receiver, int sender) const {
        return memory.of(receiver) + place_of(sender, receiver) * packs;
    }
};

/// Bytes of a slot: enough for calls of 1 GiB (512 KiB on emulated GPUs), and a little more.
std::size_t peer_slot_bytes(int ranks);

/// Where a rank's peers tell it that they gave up: symmetric, zeroed before the first use.
struct TrustMemory {
    std::uint32_t gave_up[kMaxBarrierRanks];  ///< Written by peers. Not 0: that peer gave up.
};

/// One rank's side.
struct Trust {
    SymmetricPointer<TrustMemory> memory;
    int rank;  ///< This rank.
    int ranks;

    /// Tells the peers that this rank gave up.
    __host__ __device__ void tell_peers(const simt::ThreadBlock& block) const {
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            signal(&memory.of(p)->gave_up[rank], 1);
        }
    }
    /// Fails the call if a peer has told this rank that it gave up.
    __host__ __device__ void require(const simt::ThreadBlock& block,
                                     const simt::Timeout& timeout) const {
        for (int p = 0; p < ranks && block.thread_rank() == 0; ++p) {
            if (simt::load(&memory.of(rank)->gave_up[p], simt::Order::kRelaxed) != 0) {
                simt::Waiter(timeout).fail({simt::Wait::kTrust, rank, p, 0}, 1);
            }
        }
    }
};

}  // namespace symm
