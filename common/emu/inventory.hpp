#pragma once
/// \file
/// Counts of all that exists in the emulated driver: equal before and after, nothing was leaked.

#include <cstddef>
#include <string>

namespace symm::emu {

struct Inventory {
    std::size_t physical_allocations = 0;  ///< Of cuMemCreate and imports.
    std::size_t physical_bytes = 0;
    std::size_t handle_references = 0;  ///< How many cuMemRelease would be accepted.
    std::size_t reservations = 0;
    std::size_t reserved_bytes = 0;
    std::size_t mappings = 0;
    std::size_t plain_allocations = 0;  ///< Of cuMemAlloc.
    std::size_t pinned_host_allocations = 0;
    std::size_t ipc_openings = 0;
    std::size_t contexts = 0;  ///< Alive, primary ones too.
    std::size_t streams = 0;   ///< Without the default streams.
    std::size_t events = 0;
    std::size_t graphs = 0;
    std::size_t graph_executables = 0;

    bool operator==(const Inventory&) const = default;
};

/// What exists now. Safe from any thread.
Inventory inventory();

/// A line for messages, of the counts that are not zero: `mappings 2, streams 1`, or `nothing`.
std::string describe(const Inventory& inventory);

}  // namespace symm::emu
