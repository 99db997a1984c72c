#pragma once
/// \file
/// The memory behind peer slots: large, so the first algorithm that needs it makes it.

#include "common/ranks/rank.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/peer_slots.hpp"

namespace symm {

/// Slots for inputs and as many for sums, and where peers tell that they gave up.
class SlotMemory {
public:
    /// Collective.
    explicit SlotMemory(Rank& rank) : SlotMemory(rank, peer_slot_bytes(rank.size())) {}
    /// With slots of `slot_bytes` bytes, a multiple of 16.
    SlotMemory(Rank& rank, std::size_t slot_bytes);

    /// Bytes on each rank.
    static std::size_t bytes(int ranks) { return bytes(ranks, peer_slot_bytes(ranks)); }

    const Trust& trust() const { return trust_; }
    const PeerSlots& inputs() const { return inputs_; }
    const PeerSlots& sums() const { return sums_; }

private:
    static std::size_t bytes(int ranks, std::size_t slot_bytes);

    SymmetricRange memory_;
    PeerSlots inputs_;
    PeerSlots sums_;
    Trust trust_;
};

}  // namespace symm
