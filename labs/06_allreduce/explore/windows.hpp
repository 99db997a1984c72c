#pragma once
/// \file
/// What the scenes of algorithms on windows share: buffers, and memory that has seen many calls.

#include <algorithm>

#include "labs/05_device_prims/explore/symmetric.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/explore/calls.hpp"

namespace symm {

// The memory of a rank after many calls: all its epochs, and the peers' flags, are `epoch`.
inline void begin_at(std::uint32_t epoch, RendezvousMemory& memory) {
    for (unsigned b = 0; b < 2; ++b) {
        memory.epoch[b] = epoch;
        for (int p = 0; p < kMostExplored; ++p) {
            memory.inbox[b][p][0] = memory.inbox[b][p][1] = {0, epoch, 0, epoch};
        }
    }
}
inline void begin_at(std::uint32_t epoch, BarrierMemory& memory) {
    for (unsigned b = 0; b < 2; ++b) {
        memory.epoch[b] = epoch;
        std::fill_n(memory.inbox[b], kMostExplored, epoch);
    }
}

inline void name_memory(Scene& scene, const Ranks& who, SymmetricPointer<RendezvousMemory> meeting,
                        SymmetricPointer<BarrierMemory> barrier) {
    name_inboxes(scene, meeting, who.ranks, who.blocks, "meeting", &RendezvousMemory::inbox);
    name_inboxes(scene, barrier, who.ranks, who.blocks, "barrier", &BarrierMemory::inbox);
    for (int rank = 0; rank < who.ranks; ++rank) {
        scene.name(meeting.of(rank)->epoch, who.blocks, "meeting epoch", rank);
        scene.name(barrier.of(rank)->epoch, who.blocks, "barrier epoch", rank);
    }
}

}  // namespace symm
