#pragma once
/// \file
/// One address for memory of all ranks: a multicast object.
///
/// How it is built (multicast_range.cpp follows this table). Each step is collective: if it fails
/// on one rank, all ranks throw and give back what they have.
///
/// | step      | what a rank does                                        | why all wait               |
/// |-----------|---------------------------------------------------------|----------------------------|
/// | 1 object  | rank 0 creates the object; the others import it         | there is one object        |
/// | 2 team    | adds its device                                         | memory may be bound only when all devices were added |
/// | 3 memory  | creates memory of its device, and binds it              | an access must find memory of every device |
/// | 4 address | maps the object for its device                          |                            |
///
/// **On emulated GPUs. It was never run on a real one by us** (docs/DESIGN.md): there, the first
/// step throws unless SYMM_MULTICAST=1.
///
/// Source: NCCL's ncclNvlsGroupCreate, ncclNvlsGroupConnect and nvlsAllocateMem in
/// src/transport/nvls.cc.

#include <cuda.h>

#include <cstddef>

#include "common/ranks/rank.hpp"
#include "labs/01_vmm_alloc/address_range.hpp"
#include "labs/01_vmm_alloc/mapping.hpp"

namespace symm {

/// Owns this rank's memory and its mapping of the object. Move-only. Construction is collective,
/// destruction is not: before it, a rank waits until no rank uses its memory any more.
class MulticastRange {
public:
    /// `bytes` of new memory on each rank's device, zeroed. Throws std::runtime_error, on all
    /// ranks, where a device has no multicast, where two ranks have the same device, or where it is
    /// not allowed.
    MulticastRange(Rank& rank, std::size_t bytes);

    /// Where kernels of this rank reach all ranks' memory, by multimem.hpp alone.
    template <class T>
    T* all(std::size_t offset = 0) const {
        return reinterpret_cast<T*>(all_.base() + offset);
    }
    /// This rank's memory.
    template <class T>
    T* own(std::size_t offset = 0) const {
        return reinterpret_cast<T*>(own_.base() + offset);
    }

private:
    AddressRange own_, all_;
    Mapping mapped_own_, mapped_all_;
};

}  // namespace symm
