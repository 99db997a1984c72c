#pragma once
/// \file
/// The memory of an algorithm or a collective of your own on each rank, and what a kernel gets of
/// it: a mailbox, a rendezvous, a barrier and turns.

#include <cstddef>

#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"
#include "labs/06_allreduce/algorithms/turns/turns.hpp"
#include "labs/06_allreduce/algorithms/two_shot/rendezvous.hpp"

namespace symm {

/// Zeroed before the first use, but for the slots of a mailbox with the sentinel: these are filled
/// with one bits.
struct OwnMemory {
    BarrierMemory barrier;
    RendezvousMemory rendezvous;
    TurnsMemory turns;
    Epochs epochs;
    alignas(128) simt::Pack16 slots[1];  ///< And more.

    /// Bytes on each rank, for `slots_per_peer` slots of what a rank sends to one peer.
    static std::size_t bytes(int ranks, unsigned slots_per_peer) {
        return offsetof(OwnMemory, slots) + std::size_t{Mailbox::kBanks} *
                                                static_cast<unsigned>(ranks - 1) * slots_per_peer *
                                                sizeof(simt::Pack16);
    }
};

/// The mailbox of one rank.
inline Mailbox mailbox_of(SymmetricPointer<OwnMemory> memory, int rank, unsigned slots_per_peer) {
    return {&memory.of(rank)->epochs, {memory.first->slots, memory.stride}, slots_per_peer};
}

}  // namespace symm
