#pragma once
/// \file
/// Memory of all ranks of a scene, with a constant stride between ranks.

#include <string>
#include <type_traits>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

/// `count` objects in the memory of each rank. Nothing may be allocated with another rank between.
template <class T>
SymmetricPointer<T> symmetric(Scene& scene, int ranks, const std::string& name,
                              std::size_t count = 1) {
    SymmetricPointer<T> all{scene.allocate<T>(count, name, 0), 0};
    for (int rank = 1; rank < ranks; ++rank) {
        T* const own = scene.allocate<T>(count, name, rank);
        if (rank == 1) {
            all.stride = static_cast<std::size_t>(reinterpret_cast<char*>(own) -
                                                  reinterpret_cast<char*>(all.first));
        }
    }
    return all;
}

/// Names a member `inbox[block][peer]` of each rank's memory, for reports: `r0.inbox(from 1)`.
/// `unit` is what the first index counts.
template <class T, class Inbox>
void name_inboxes(Scene& scene, SymmetricPointer<T> memory, int ranks, unsigned blocks,
                  const std::string& name, Inbox T::*member, const std::string& unit = "block") {
    using Word = std::remove_all_extents_t<Inbox>;
    for (int i = 0; i < ranks * ranks; ++i) {
        for (unsigned b = 0; b < blocks; ++b) {
            const auto& inbox = (memory.of(i / ranks)->*member)[b][i % ranks];
            const std::string block = blocks == 1 ? "" : ", " + unit + ' ' + std::to_string(b);
            scene.name(reinterpret_cast<const Word*>(&inbox), sizeof inbox / sizeof(Word),
                       name + "(from " + std::to_string(i % ranks) + block + ')', i / ranks);
        }
    }
}

}  // namespace symm::explore
