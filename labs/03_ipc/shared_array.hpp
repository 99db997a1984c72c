#pragma once
/// \file
/// The memory of one rank, mapped by every rank: one handle, by hand.
///
///     root                                      every other rank
///     PhysicalMemory::create                    .
///     export_fd              -- exchange -->    a file descriptor with another number
///     .                                         import_memory
///     AddressRange, Mapping, allow              AddressRange, Mapping, allow
///
/// SymmetricRange does the same with the memory of all ranks at once.

#include <cuda.h>

#include <cstddef>
#include <string>

#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"

namespace symm {

/// Owns this rank's mapping of memory on the root's device. Move-only.
class SharedArray {
public:
    /// Collective: creates `bytes` on the device of rank `root`. When it returns, all ranks may use
    /// the memory. If it fails on one rank, it throws on all ranks and leaves nothing behind.
    SharedArray(Rank& rank, int root, std::size_t bytes);

    CUdeviceptr base() const { return mapping_.address(); }
    /// This rank's file descriptors and addresses, as one line of text.
    const std::string& story() const { return story_; }

private:
    AddressRange range_;
    Mapping mapping_;
    std::string story_;
};

}  // namespace symm
