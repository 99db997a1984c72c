#pragma once
/// \file
/// The ranks' counts of a MulticastBarrier in a scene.

#include <vector>

#include "labs/05_device_prims/multicast_barrier.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

/// The counts of `ranks` ranks behind one multicast address, where each block has passed `passed`
/// barriers.
inline std::vector<ArrivalView> arrivals(Scene& scene, int ranks, unsigned blocks,
                                         std::uint32_t passed = 0) {
    std::vector<ArrivalCounts*> counts;
    for (int rank = 0; rank < ranks; ++rank) {
        ArrivalCounts& mine = *counts.emplace_back(scene.zeroed<ArrivalCounts>(1, "counts", rank));
        scene.name(mine.passed, blocks, "passed", rank);
        for (unsigned b = 0; b < blocks; ++b) {
            mine.passed[b] = passed;
            mine.arrived[b].value = passed * static_cast<unsigned>(ranks);
            scene.name(&mine.arrived[b].value, 1, "arrived", rank);
        }
    }
    auto* const all = scene.multicast<ArrivalCounts>(counts, 1, "all counts");
    std::vector<ArrivalView> views;
    for (int rank = 0; rank < ranks; ++rank) {
        views.push_back({counts[static_cast<std::size_t>(rank)], all, rank, ranks});
    }
    return views;
}

}  // namespace symm::explore
