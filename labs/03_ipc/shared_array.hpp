#pragma once
/// \file
/// One rank's memory in every rank's addresses, by hand: the walk of one handle.
///
///     root                                      every other rank
///     PhysicalMemory::create                    .
///     export_descriptor      -- exchange -->    a descriptor of its own number
///     .                                         import_descriptor
///     AddressRange, Mapping, allow              AddressRange, Mapping, allow
///
/// SymmetricRange does the same for everybody's memory at once.

#include <cuda.h>

#include <cstddef>
#include <string>

#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"

namespace symm {

/// Owns this rank's view of memory that lies on the root's device. Move-only.
class SharedArray {
public:
    /// Collective: `bytes` on the device of rank `root`. When it returns, all ranks may use the
    /// memory. Throws on all ranks where it fails on one, and leaves nothing behind.
    SharedArray(Rank& rank, int root, std::size_t bytes, Deadline deadline = Deadline::standard());

    CUdeviceptr base() const { return mapping_.address(); }
    /// Bytes asked for.
    std::size_t size() const { return bytes_; }
    /// What this rank did, in a line for people: descriptors and addresses.
    const std::string& story() const { return story_; }

private:
    std::size_t bytes_;
    AddressRange range_;
    Mapping mapping_;
    std::string story_;
};

}  // namespace symm
