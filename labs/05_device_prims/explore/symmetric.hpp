#pragma once
/// \file
/// Memory of all ranks of a scene, with a constant stride between ranks.

#include <string>

#include "common/explore/explore.hpp"
#include "labs/03_ipc/symmetric_pointer.hpp"

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

}  // namespace symm::explore
