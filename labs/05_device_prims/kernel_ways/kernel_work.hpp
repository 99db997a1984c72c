#pragma once
/// \file
/// The work of the kernels of kernel_ways.hpp, written once: used by GPUs, by the host twins on
/// emulated GPUs (common/emu/kernels/host_twin.hpp) and by the check of the results.

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"

namespace symm {

/// `count` numbers to read, and the same number to write.
struct Numbers {
    const std::uint32_t* in;
    std::uint32_t* out;
    std::size_t count;
};

/// A function of one number, with two parameters. On integers, so that the result has the same bits
/// on every machine.
using Operation = std::uint32_t (*)(std::uint32_t x, std::uint32_t a, std::uint32_t b);

__host__ __device__ inline std::uint32_t scale_and_shift(std::uint32_t x, std::uint32_t a,
                                                         std::uint32_t b) {
    return a * x + b;
}
__host__ __device__ inline std::uint32_t greatest(std::uint32_t x, std::uint32_t a,
                                                  std::uint32_t b) {
    return x > a ? (x > b ? x : b) : (a > b ? a : b);
}
__host__ __device__ inline std::uint32_t least(std::uint32_t x, std::uint32_t a, std::uint32_t b) {
    return x < a ? (x < b ? x : b) : (a < b ? a : b);
}

/// The body of every kernel here: `out[i] = operation(in[i], a, b)`, for any grid. Where the
/// compiler knows the operation, it inlines it.
__host__ __device__ inline void apply(const simt::ThreadBlock& block, const Numbers& numbers,
                                      std::uint32_t a, std::uint32_t b, Operation operation) {
    for (std::size_t i = block.grid_rank(); i < numbers.count; i += block.grid_size()) {
        numbers.out[i] = operation(numbers.in[i], a, b);
    }
}

}  // namespace symm
