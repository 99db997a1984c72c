#pragma once
/// \file
/// Windows: memory of every rank that all ranks' kernels can use. Communicator::allocate() makes
/// one of new memory, and register_memory() one of the caller's, by lab 03's SymmetricRange; this
/// file keeps and finds them. Communicator::all_reduce() says which calls need them.

#include <cuda.h>

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {

/// Memory of every rank, the same number of bytes on each.
struct Window {
    SymmetricRange range;
    CUdeviceptr registered;          ///< The caller's own address of it; 0: there is none.
    std::vector<CUdeviceptr> bases;  ///< Where the range begins in each rank's addresses.

    /// The address of this rank's memory.
    CUdeviceptr local() const { return range.local() + range.lead(); }
};

/// A place in a window.
struct WindowPlace {
    const Window* window;
    std::size_t offset;  ///< In this rank's memory.

    /// Its address in the memory of `owner`, as rank `rank` sees it.
    CUdeviceptr seen_by(int rank, int owner) const {
        return window->bases[static_cast<std::size_t>(rank)] +
               static_cast<std::size_t>(owner) * window->range.stride() + offset;
    }
};

/// One rank's windows. All ranks add and release theirs together, in the same order.
class Windows {
public:
    /// Returns the new window.
    const Window& add(Rank& rank, SymmetricRange range, CUdeviceptr registered);
    /// Forgets the window at this address. Throws std::invalid_argument if there is none, or if
    /// another rank releases a different one.
    void release(Rank& rank, CUdeviceptr local);
    /// The place of these bytes, if they lie in one window, by either of its addresses.
    std::optional<WindowPlace> find(CUdeviceptr pointer, std::size_t bytes) const;

private:
    std::list<Window> windows_;
};

}  // namespace symm
