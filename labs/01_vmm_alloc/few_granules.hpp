#pragma once
/// \file
/// Tensors that share memory because they exist at different times: an open task.

#include <cstddef>
#include <vector>

#include "labs/01_vmm_alloc/memory_properties.hpp"

namespace symm {

struct Tensor {
    std::size_t bytes;
    int first, last;  ///< The steps in which it exists, both included.
};

/// Offsets of the tensors in one buffer, multiples of 512. Tensors that exist in the same step do
/// not overlap.
inline std::vector<std::size_t> place(const std::vector<Tensor>& tensors) {
    std::vector<std::size_t> offsets;  // the lowest place that the tensors before leave free
    for (const Tensor& tensor : tensors) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            const Tensor& other = tensors[i];
            if (tensor.first <= other.last && other.first <= tensor.last &&
                at < offsets[i] + other.bytes && offsets[i] < at + tensor.bytes) {
                at = round_up(offsets[i] + other.bytes, 512);
                i = std::size_t{0} - 1;  // look at all of them again
            }
        }
        offsets.push_back(at);
    }
    return offsets;
}

}  // namespace symm
