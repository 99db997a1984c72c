#pragma once
/// \file
/// Memory of all ranks of a scene, with a constant stride between ranks.

#include <string>
#include <type_traits>

#include "labs/03_ipc/symmetric_pointer.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

/// The memory of each rank, which `allocate(rank)` returns. Nothing may be allocated in between.
template <class T, class Allocate>
SymmetricPointer<T> symmetric_of(int ranks, const Allocate& allocate) {
    SymmetricPointer<T> all{allocate(0), 0};
    for (int rank = 1; rank < ranks; ++rank) {
        T* const own = allocate(rank);
        if (rank == 1) {
            all.stride = static_cast<std::size_t>(reinterpret_cast<char*>(own) -
                                                  reinterpret_cast<char*>(all.first));
        }
    }
    return all;
}

/// `count` objects in the memory of each rank, which nothing has written.
template <class T>
SymmetricPointer<T> symmetric(Scene& scene, int ranks, const std::string& name,
                              std::size_t count = 1) {
    return symmetric_of<T>(ranks, [&](int rank) { return scene.allocate<T>(count, name, rank); });
}

/// The same, zeroed.
template <class T>
SymmetricPointer<T> symmetric_zeroed(Scene& scene, int ranks, const std::string& name,
                                     std::size_t count = 1) {
    return symmetric_of<T>(ranks, [&](int rank) { return scene.zeroed<T>(count, name, rank); });
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
