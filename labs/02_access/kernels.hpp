#pragma once
/// \file
/// The kernels of this lab: fill, verify, sum, copy, chase, and the gate that starts many at once.
///
/// Each function below starts one on a device; where the memory lies is none of its business. That
/// is the point of the lab: the same pointer is a local or a remote one, depending on who follows
/// it.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/simt/timeout.hpp"
#include "labs/02_access/gpu.hpp"

namespace symm {

/// A piece of memory that holds the pattern of `seed`, from the pattern's word `first` on.
struct PatternRange {
    CUdeviceptr at;         ///< Aligned to 16 bytes.
    std::size_t words;      ///< Words of 4 bytes; any number.
    std::uint32_t seed;     ///< Whose data it is.
    std::size_t first = 0;  ///< The index of the first word.
};

/// What verify() found.
struct Verdict {
    std::uint64_t wrong = 0;        ///< How many words differ.
    std::uint64_t first_wrong = 0;  ///< The lowest index among them, from the range's start.
    std::uint32_t expected = 0;     ///< What should have been there,
    std::uint32_t seen = 0;         ///< and what was.
    bool right() const { return wrong == 0; }
    /// `all 1024 words right`, `3 of 1024 words wrong, first word 17: expected 0x..., saw 0x...`.
    std::string describe(std::size_t words) const;
};

/// Queues stores of the pattern on the device's stream.
void queue_fill(const Gpu& gpu, const PatternRange& range);

/// Reads the range with loads of `gpu` and compares. Waits for its stream.
Verdict verify(const Gpu& gpu, const PatternRange& range);

/// The sum of `words` words at `at`, read by `gpu`. Waits for its stream.
std::uint64_t sum(const Gpu& gpu, CUdeviceptr at, std::size_t words);

/// Queues a copy by loads and stores of 16 bytes. Addresses are aligned to 16, `bytes` to 4. Which
/// of the two is remote decides what it measures.
void queue_copy(CUstream stream, LaunchShape shape, CUdeviceptr to, CUdeviceptr from,
                std::size_t bytes);

/// Queues one thread that follows `hops` indices, each read from where the one before said: at
/// `at[i]` stands the index to go to next. The index it ends at goes to `end`, in memory that the
/// device may write and the host read.
void queue_chase(CUstream stream, CUdeviceptr at, std::uint32_t hops, std::uint32_t* end);

/// Queues one thread that waits until the word at `open` is not zero (both in pinned memory):
/// work queued behind it on many streams starts at one moment. It gives up after `timeout`'s limit.
void queue_gate(CUstream stream, const std::uint32_t* open, const simt::Timeout& timeout);

}  // namespace symm
