#pragma once
/// \file
/// The kernels of this lab: sum, copy, chase, and the gate that starts many at once.
///
/// Each function below starts one on a device; where the memory lies is none of its business. That
/// is the point of the lab: the same pointer is a local or a remote one, depending on who follows
/// it.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/cuda/gpu.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

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
