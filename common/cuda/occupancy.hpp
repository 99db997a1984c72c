#pragma once
/// \file
/// How many blocks of a kernel a device keeps resident at once.
///
/// Blocks that wait for blocks of other ranks must all be running: a block that waits for a free
/// multiprocessor while the others wait for it never starts. So the launches of all ranks of one
/// process that share the device have at most this many blocks together. Like launch.hpp, only .cu
/// files may include this.
///
/// Source: CUDA Runtime API, "Occupancy".

#include <cuda_runtime.h>

#include "common/cuda/check.hpp"
#include "common/cuda/launch.hpp"
#include "common/emu/kernels/launch.hpp"

namespace symm {

/// How many blocks of `threads` threads with `shared_bytes` of dynamic shared memory the current
/// context's device keeps resident at once. It depends on the kernel's registers and shared memory.
/// 0 if not even one fits. Throws CudaError.
template <class Kernel>
unsigned resident_blocks(unsigned threads, unsigned shared_bytes = 0) {
    if (is_emulated()) {
        return static_cast<unsigned>(emu::threads_of_device()) / threads;
    }
    if constexpr (!is_on_gpus<Kernel>()) {
        return 0;
    } else {
        const auto check = [&](auto result) {
            cu_check(
                static_cast<CUresult>(result),
                "cudaOccupancyMaxActiveBlocksPerMultiprocessor({}, threads={}, shared_bytes={})",
                kernel_name<Kernel>(), threads, shared_bytes);
        };
        int device = 0;
        int multiprocessors = 0;
        int blocks = 0;
        check(cudaGetDevice(&device));
        check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
        if (shared_bytes > kSharedBytesUnasked) {
            // Not by the runtime: it remembers the number, and does not set it in a new context.
            check(cuFuncSetAttribute(function_of<Kernel>(),
                                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(shared_bytes)));
        }
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, entry_of<Kernel>(), static_cast<int>(threads), shared_bytes));
        return static_cast<unsigned>(blocks * multiprocessors);
    }
}

}  // namespace symm
