#pragma once
/// \file
/// How a kernel enters the emulated GPU: as host code, not as a CUfunction.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <string>

#include "common/simt/thread_block.hpp"

namespace symm::emu {

/// One launch of a kernel on an emulated GPU.
struct KernelLaunch {
    std::string name;              ///< The kernel's type, for messages.
    dim3 grid{1, 1, 1};            ///< Blocks; only x may exceed 1.
    dim3 block{1, 1, 1};           ///< Threads a block; only x may exceed 1.
    std::size_t shared_bytes = 0;  ///< Dynamic shared memory of each block.
    /// What each thread runs. Owns a copy of the kernel's parameters.
    std::function<void(const simt::ThreadBlock&)> thread;
};

/// Queues a kernel on a stream (or adds it to the graph the stream is capturing), as
/// cuLaunchKernel. Errors: CUDA_ERROR_INVALID_VALUE for an empty, multi-dimensional or too large
/// grid or block or too much shared memory, CUDA_ERROR_INVALID_HANDLE for an unknown stream,
/// CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE where the blocks of all streams of the device could
/// never be resident at once.
CUresult launch_kernel(CUstream stream, KernelLaunch launch);

/// Whether the launch the calling thread plays a part in has lost a thread to a fault: what it
/// still waits for may never come. False in all other threads.
bool kernel_is_abandoned();

}  // namespace symm::emu
