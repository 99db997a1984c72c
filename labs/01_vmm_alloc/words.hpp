#pragma once
/// \file
/// Every word of a buffer written and read back: what the program's "right" stands on.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace symm {

/// A word that is not what was written there.
struct WrongWord {
    std::size_t offset = 0;  ///< In bytes from the buffer's start.
    std::uint32_t expected = 0;
    std::uint32_t seen = 0;
};

/// Writes the words of [from, to) of the buffer at `base` (multiples of 4), each with a value that
/// no other place within 16 GiB has, nor the same place with another seed. Needs a current context
/// that reaches the memory. Throws CudaError.
void write_words(CUdeviceptr base, std::size_t from, std::size_t to, std::uint32_t seed);

/// Reads every word of the first `bytes` bytes. The first that is not as written with this seed, or
/// nothing where all are. Throws CudaError.
std::optional<WrongWord> find_wrong_word(CUdeviceptr base, std::size_t bytes, std::uint32_t seed);

}  // namespace symm
