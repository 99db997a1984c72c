#pragma once
/// \file
/// What programs and tests write: a word that tells whose it is and where it belongs.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace symm {

/// The word number `index` of the data with this seed. Different at every index of a buffer (the
/// factor is odd, so the product repeats after 2^32 words only) and for every seed at the same
/// index: data that landed at another place, or came from another device, does not pass for it.
__host__ __device__ constexpr std::uint32_t pattern_word(std::uint32_t seed, std::size_t index) {
    return static_cast<std::uint32_t>(index) * 2654435761u ^ (seed + 1) * 2246822519u ^
           static_cast<std::uint32_t>(index >> 32);
}

}  // namespace symm
