#pragma once
/// \file
/// Windows: memory of every rank that all ranks' kernels can use. Communicator::allocate() makes
/// one of new memory, and register_memory() one of the caller's, by lab 03's SymmetricRange; this
/// file keeps and finds them. Communicator::all_reduce() says which calls need them.
///
/// Physical memory is known by the handle that cuMemRetainAllocationHandle returns: the same one
/// for all addresses of the memory as long as it exists, which is at least as long as the window.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {

/// Physical memory of a window.
struct WindowSegment {
    std::size_t offset;  ///< From the start of the rank's range.
    std::size_t bytes;
    CUmemGenericAllocationHandle handle;  ///< Not owned.
};

/// Memory of every rank, the same number of bytes on each.
struct Window {
    SymmetricRange range;
    CUdeviceptr registered;               ///< The caller's own address of it; 0: there is none.
    std::vector<CUdeviceptr> bases;       ///< Where the range begins in each rank's addresses.
    std::vector<WindowSegment> segments;  ///< This rank's.
    bool has_alias;                       ///< Another window has some of the same memory.
    std::uint64_t calls_before = 0;       ///< No earlier call uses it.

    /// The address of this rank's memory.
    CUdeviceptr local() const { return range.local() + range.lead(); }
};

/// A place in a window.
struct WindowPlace {
    const Window* window;
    std::size_t offset;       ///< In this rank's memory.
    bool by_callers_address;  ///< Not by the window's own.

    /// Its address in the memory of `owner`, as rank `rank` sees it.
    CUdeviceptr seen_by(int rank, int owner) const {
        return window->bases[static_cast<std::size_t>(rank)] +
               static_cast<std::size_t>(owner) * window->range.stride() + offset;
    }
    /// Throws std::invalid_argument if the memory at `pointer`, where this place of `bytes` bytes
    /// was found, is no longer that of the window. Costs two driver calls per segment.
    void require_same_memory(CUdeviceptr pointer, std::size_t bytes) const;
    /// Whether these bytes and those of a place in another window are the same memory.
    [[nodiscard]] bool overlaps(std::size_t bytes, const WindowPlace& other,
                                std::size_t other_bytes) const;
};

/// One rank's windows. All ranks add theirs together, and forget them in the same order.
class Windows {
public:
    /// Returns the new window. Collective. Throws std::invalid_argument if `registered` is in a
    /// window whose memory has been freed since.
    Window& add(Rank& rank, SymmetricRange range, CUdeviceptr registered);
    /// Forgets the window at this address. Throws std::invalid_argument if there is none, or if
    /// another rank releases a different one.
    void release(Rank& rank, CUdeviceptr local);
    /// The same on this rank alone. Returns the window, whose memory is still there.
    std::list<Window> take(CUdeviceptr local);
    /// The place of these bytes, if they lie in one window, by either of its addresses.
    [[nodiscard]] std::optional<WindowPlace> find(CUdeviceptr pointer, std::size_t bytes) const;

private:
    std::list<Window>::iterator at(CUdeviceptr local);

    std::list<Window> windows_;
};

}  // namespace symm
