#pragma once
/// \file
/// Addresses and memory as pictures in plain text.

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

namespace symm {

/// How far an allocation has come.
struct Picture {
    CUdeviceptr base = 0;           ///< The reservation's first address; 0 while there is none.
    std::size_t bytes = 0;          ///< Its size, and the memory's.
    std::string memory;             ///< The memory's name, `device 0`; empty while there is none.
    bool mapped = false;            ///< Whether the memory stands at the addresses.
    std::string access = "nobody";  ///< Who may read and write.
};

/// The reservation on the left, the memory on the right, the mapping between them.
std::string draw(const Picture& picture);

/// A bar for a reservation of `capacity` bytes in which pieces of these sizes are mapped, one
/// letter a piece: `[AAAABBBB........]`.
std::string draw_pieces(const std::vector<std::size_t>& pieces, std::size_t capacity);

}  // namespace symm
