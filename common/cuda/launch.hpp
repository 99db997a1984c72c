#pragma once
/// \file
/// Starts a kernel, on a GPU or on an emulated one.
///
/// A kernel is a trivially copyable struct of parameters with
/// `__host__ __device__ void operator()(const simt::ThreadBlock&) const`. Only .cu files may
/// include this: nvcc has to see the kernel.

#include <cuda.h>
#include <cuda_runtime.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>

#include "common/cuda/cuda_error.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/launch_order.hpp"
#include "common/emu/kernels/launch.hpp"
#include "common/simt/thread_block.hpp"

namespace symm {

/// The `__global__` function that is launched. With `__grid_constant__` all threads read the
/// parameters from constant memory, without copies of their own.
template <class Kernel>
__global__ void entry(const __grid_constant__ Kernel kernel) {
    kernel(simt::ThreadBlock{});
}

/// The same for a kernel with a `kMaxThreads`: limits a thread's registers so that a block of
/// kMaxThreads threads fits a multiprocessor's 64 K. Eight fewer, since an H200 refused to launch
/// 512 threads of 128 registers each (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES).
template <class Kernel>
__global__ void __maxnreg__(64 * 1024 / Kernel::kMaxThreads - 8)
    limited_entry(const __grid_constant__ Kernel kernel) {
    kernel(simt::ThreadBlock{});
}

/// Whether a kernel is compiled for GPUs as well: yes, unless its `kOnGpus` is false.
template <class Kernel>
constexpr bool is_on_gpus() {
    if constexpr (requires { Kernel::kOnGpus; }) {
        return Kernel::kOnGpus;
    } else {
        return true;
    }
}

/// The entry that launches `Kernel`.
template <class Kernel>
auto entry_of() {
    if constexpr (requires { Kernel::kMaxThreads; }) {
        return &limited_entry<Kernel>;
    } else {
        return &entry<Kernel>;
    }
}

/// The name of a kernel's type as in the source, for messages.
template <class Kernel>
std::string kernel_name() {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(typeid(Kernel).name(), nullptr, nullptr, &status), std::free);
    return status == 0 ? text.get() : typeid(Kernel).name();
}

/// The CUfunction of a kernel in the current context. The runtime finds it by the address of its
/// entry, which was registered when the program was loaded. Throws CudaError.
template <class Kernel>
CUfunction function_of() {
    cudaFunction_t function = nullptr;
    const cudaError_t result =
        cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(entry_of<Kernel>()));
    if (result != cudaSuccess) {
        detail::throw_cuda_error(static_cast<CUresult>(result),
                                 "cudaGetFuncBySymbol(" + kernel_name<Kernel>() + ")");
    }
    return function;
}

/// More dynamic shared memory has to be asked for, function by function.
inline constexpr unsigned kSharedBytesUnasked = 48 * 1024;

namespace detail {
template <class Kernel>
CUresult launch_native(CUstream stream, unsigned blocks, unsigned threads, const Kernel& kernel,
                       unsigned shared_bytes, LaunchOrder order) {
    if constexpr (!is_on_gpus<Kernel>()) {
        return CUDA_ERROR_NOT_SUPPORTED;
    } else {
        const CUfunction function = function_of<Kernel>();
        if (shared_bytes > kSharedBytesUnasked) {
            const CUresult allowed =
                cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(shared_bytes));
            if (allowed != CUDA_SUCCESS) {
                return allowed;
            }
        }
        void* parameters[] = {const_cast<Kernel*>(&kernel)};
        if (order == LaunchOrder::kDependent) {
            CUlaunchAttribute dependent{};
            dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            dependent.value.programmaticStreamSerializationAllowed = 1;
            const CUlaunchConfig config{blocks,       1,      1,          threads, 1, 1,
                                        shared_bytes, stream, &dependent, 1};
            return cuLaunchKernelEx(&config, function, parameters, nullptr);
        }
        return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream,
                              parameters, nullptr);
    }
}
}  // namespace detail

/// Queues `kernel` on `stream`: `blocks` blocks of `threads` threads with `shared_bytes` of dynamic
/// shared memory each. Throws CudaError with the kernel's name and the sizes.
template <class Kernel>
void launch(CUstream stream, unsigned blocks, unsigned threads, const Kernel& kernel,
            unsigned shared_bytes = 0, LaunchOrder order = LaunchOrder::kAfter) {
    static_assert(std::is_trivially_copyable_v<Kernel>, "parameters travel to the GPU as bytes");
    const CUresult result =
        is_emulated()
            ? emu::launch_kernel(stream,
                                 {kernel_name<Kernel>(), dim3(blocks), dim3(threads), shared_bytes,
                                  [kernel](const simt::ThreadBlock& block) { kernel(block); },
                                  order == LaunchOrder::kDependent})
            : detail::launch_native(stream, blocks, threads, kernel, shared_bytes, order);
    if (result != CUDA_SUCCESS) {
        detail::throw_cuda_error(
            result, "cuLaunchKernel(" + kernel_name<Kernel>() + ", blocks=" +
                        std::to_string(blocks) + ", threads=" + std::to_string(threads) +
                        ", shared_bytes=" + std::to_string(shared_bytes) + ")");
    }
}

}  // namespace symm
