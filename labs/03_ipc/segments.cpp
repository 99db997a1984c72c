#include "labs/03_ipc/segments.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

std::vector<PhysicalMemory> create_segments(const CUmemAllocationProp& properties,
                                            std::size_t bytes) {
    const std::size_t most = segment_size(bytes, granularity(properties));
    std::vector<PhysicalMemory> segments;
    for (std::size_t left = bytes; left > 0; left -= segments.back().size()) {
        segments.push_back(PhysicalMemory::create(properties, std::min(most, left)));
    }
    return segments;
}

std::vector<PhysicalMemory> find_segments(CUdeviceptr pointer, std::size_t bytes) {
    std::vector<PhysicalMemory> segments;
    for (std::size_t found = 0; found < bytes; found += segments.back().size()) {
        CUdeviceptr base = 0;
        std::size_t size = 0;
        cu_check(cuMemGetAddressRange(&base, &size, pointer + found), "cuMemGetAddressRange({:#x})",
                 pointer + found);
        if (base != pointer + found) {
            throw std::invalid_argument(fmt::format(
                "{:#x} lies {} bytes inside an allocation: give the address where it starts",
                pointer, pointer + found - base));
        }
        segments.push_back(PhysicalMemory::mapped_at(base));
    }
    return segments;
}

}  // namespace symm
