#pragma once
/// \file
/// The kernels of this lab: copy, chase, and the gate that starts several kernels at once.
///
/// Each function below queues one of these kernels on a stream. A kernel does not know on which
/// device its memory is: the same pointer is local to one device and remote to another. kernels.cu
/// explains how kernels are written here.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/cuda/gpu.hpp"
#include "common/simt/waiter.hpp"

namespace symm {

/// Queues a copy by loads and stores of 16 bytes. Addresses and `bytes` are multiples of 16. If
/// `from` is remote, it measures loads over the link; if `to` is remote, it measures stores.
void queue_copy(CUstream stream, LaunchShape shape, CUdeviceptr to, CUdeviceptr from,
                std::size_t bytes);

/// Queues one thread that follows `hops` indices from index 0 on: `at[i]` is the index to read
/// next. The index it ends at goes to `end`, which the device may write and the host read.
void queue_chase(CUstream stream, CUdeviceptr at, std::uint32_t hops, std::uint32_t* end);

/// Queues one thread that waits until the word at `open` is not zero. Work that is queued after it
/// on several streams then starts together. It gives up after `timeout`'s limit.
void queue_gate(CUstream stream, const std::uint32_t* open, const simt::Timeout& timeout);

}  // namespace symm
