#pragma once
/// \file
/// How a kernel enters the emulated GPU: as host code. (cuLaunchKernel takes a function only if it
/// has such code, see host_twin.hpp.)
///
/// Each block is a thread of the operating system, and its CUDA threads are fibers of it. All
/// blocks of a launch run at once. A launch that does not fit is refused; a GPU would run its
/// blocks in waves.

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "common/simt/thread_block.hpp"

namespace symm::emu {

inline constexpr int kMaxBlock = 1024;
inline constexpr int kThreadsOfMultiprocessor = 512;
inline constexpr std::size_t kMaxSharedBytes = 227 * 1024;

/// Threads that can be resident on a device at once.
int threads_of_device();

/// One launch of a kernel on an emulated GPU.
struct KernelLaunch {
    std::string name;              ///< The kernel's type, for messages.
    dim3 grid{1, 1, 1};            ///< Blocks; only x may exceed 1.
    dim3 block{1, 1, 1};           ///< Threads per block; only x may exceed 1.
    std::size_t shared_bytes = 0;  ///< Dynamic shared memory of each block.
    /// The code that each thread runs. Owns a copy of the kernel's parameters.
    std::function<void(const simt::ThreadBlock&)> thread;
    /// Programmatic stream serialization: it may start when a thread of each block of the kernel
    /// before it has called launch_dependents(), or the block has ended. Where it finds no room
    /// then, it starts afterwards.
    bool is_dependent = false;
};

/// Queues a kernel on a stream, as cuLaunchKernel, or adds it to the graph that the stream
/// captures. Answers
/// - CUDA_ERROR_INVALID_VALUE for a grid or a block that is empty or has several dimensions, and
///   for more than kMaxBlock threads per block or kMaxSharedBytes of shared memory,
/// - CUDA_ERROR_INVALID_HANDLE for an unknown stream or one of another context,
/// - CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE if the blocks cannot all be resident at once.
CUresult launch_kernel(CUstream stream, KernelLaunch launch);

/// The same for cuLaunchKernel, which is counted already: throws what it refuses.
void queue_kernel(CUstream stream, KernelLaunch launch);

/// For traces: called at the end of each launch, if it is not null. Most kernels do not come
/// through cuLaunchKernel, since they are linked into the program.
extern std::atomic<void (*)(CUstream, const KernelLaunch&, CUresult)> launch_observer;

}  // namespace symm::emu
