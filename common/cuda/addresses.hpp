#pragma once
/// \file
/// Whether a buffer can lie in memory at all.

#include <cuda.h>

#include <cstddef>

namespace symm {

/// Whether `count` elements of `size` bytes (not 0) at `begin` end below 2^57: no GPU or processor
/// has addresses beyond that. Checked before sizes are computed, which would wrap, and before a
/// kernel is queued, which would lose the context.
[[nodiscard]] constexpr bool is_addressable(CUdeviceptr begin, std::size_t count,
                                            std::size_t size) {
    constexpr CUdeviceptr kEnd = CUdeviceptr{1} << 57;
    return begin <= kEnd && count <= (kEnd - begin) / size;
}

}  // namespace symm
