#pragma once
/// \file
/// Tensors of other processes, for few handles: an open task.

#include <map>
#include <vector>

#include "common/cuda/check.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"

namespace symm {

/// What a rank sends to all others.
struct SharedTensors {
    struct Place {
        std::size_t segment;  ///< Its number in `segments`.
        std::size_t offset;   ///< Bytes from its beginning.
    };
    std::vector<PhysicalMemory> segments;  ///< A descriptor of each is sent, then all are released.
    std::vector<Place> places;             ///< Of each tensor.
};

/// What other processes need, so that they can use the tensors that begin at these addresses. Each
/// tensor lies in one segment. Throws CudaError.
inline SharedTensors share(const std::vector<CUdeviceptr>& tensors) {
    SharedTensors shared;
    std::map<CUdeviceptr, std::size_t> numbers;  // of segments, by their first addresses
    for (const CUdeviceptr tensor : tensors) {
        CUdeviceptr base = 0;
        cu_check(cuMemGetAddressRange(&base, nullptr, tensor), "cuMemGetAddressRange({:#x})",
                 tensor);
        const std::size_t number = numbers.emplace(base, shared.segments.size()).first->second;
        if (number == shared.segments.size()) {
            shared.segments.push_back(PhysicalMemory::mapped_at(base));
        }
        shared.places.push_back({number, tensor - base});
    }
    return shared;
}

}  // namespace symm
