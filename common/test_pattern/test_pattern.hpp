#pragma once
/// \file
/// The result check of the labs: memory is filled with a pattern, and read again by the GPU that
/// should see it.
///
/// Each word tells whose it is (the seed: a device, a rank, a round) and where it belongs (the
/// index). Data that was lost, that arrived at another place or that came from somebody else is
/// wrong in nearly every word.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/cuda/gpu.hpp"

namespace symm::test_pattern {

/// Word number `index` of the data with this seed. No two indices within 16 GiB have the same word
/// (the factor is odd, so the product repeats only after 2^32 words), and no two seeds have the
/// same word at one index.
__host__ __device__ constexpr std::uint32_t word(std::uint32_t seed, std::size_t index) {
    return static_cast<std::uint32_t>(index) * 2654435761u ^ (seed + 1) * 2246822519u ^
           static_cast<std::uint32_t>(index >> 32);
}

/// A piece of memory that holds the pattern of `seed`, from the pattern's word `first` on.
struct Range {
    CUdeviceptr at;         ///< Aligned to 4 bytes.
    std::size_t words;      ///< Words of 4 bytes; any number.
    std::uint32_t seed;     ///< Whose data it is.
    std::size_t first = 0;  ///< The pattern's index at `at`.
};

/// The result of compare().
struct Result {
    std::size_t words = 0;          ///< How many words were compared.
    std::uint64_t wrong = 0;        ///< How many of them differ.
    std::uint64_t first_wrong = 0;  ///< The lowest index among these, from the range's start.
    std::uint32_t expected = 0;     ///< What should have been there.
    std::uint32_t seen = 0;         ///< What was there.
    bool right() const { return wrong == 0; }
    /// Adds what has been found in another part of the same words.
    __host__ __device__ void add(const Result& other) {
        if (other.wrong != 0 && (wrong == 0 || other.first_wrong < first_wrong)) {
            first_wrong = other.first_wrong;
            expected = other.expected;
            seen = other.seen;
        }
        wrong += other.wrong;
    }
    /// `all 1024 words right`, `3 of 1024 words wrong, first word 17: expected 0x..., saw 0x...`.
    std::string describe() const;
};

/// Writes the pattern with stores of a kernel on `gpu`, and waits for them. Throws CudaError.
void fill(const Gpu& gpu, const Range& range);

/// The same without the wait: the stores are queued on the stream of `gpu`.
void queue_fill(const Gpu& gpu, const Range& range);

/// Reads the range with loads of a kernel on `gpu` and compares every word. Waits for the kernel.
/// Throws CudaError.
Result compare(const Gpu& gpu, const Range& range);

}  // namespace symm::test_pattern
