#pragma once
/// \file
/// The rights of mappings in a row, in few calls: an open task.

#include <map>
#include <span>
#include <vector>

#include "common/cuda/check.hpp"
#include "labs/02_access/access.hpp"

namespace symm {

/// The rights of each device.
using Rights = std::map<int, CUmemAccess_flags>;

/// Gives mappings of `bytes` each, one after the other from `at` on, their rights: mapping m those
/// of wanted[m], which all name the same devices. No device has any before, and none uses the
/// memory yet. Throws CudaError.
inline void allow_each(CUdeviceptr at, std::size_t bytes, std::span<const Rights> wanted) {
    if (wanted.empty()) {
        return;
    }
    // Up to the last mapping with the rights of the first; then those in between that differ.
    std::size_t end = wanted.size();
    while (wanted[end - 1] != wanted[0]) {
        --end;
    }
    std::vector<CUmemAccessDesc> list;
    for (const auto& [device, flags] : wanted[0]) {
        list.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags});
    }
    cu_check(cuMemSetAccess(at, end * bytes, list.data(), list.size()),
             "cuMemSetAccess(address={:#x}, size={})", at, end * bytes);
    for (std::size_t m = 1, others = 0; m < end; m += others + 1) {
        for (others = 0; wanted[m + others] != wanted[0];) {
            ++others;
        }
        allow_each(at + m * bytes, bytes, wanted.subspan(m, others));
    }
    allow_each(at + end * bytes, bytes, wanted.subspan(end));
}

}  // namespace symm
