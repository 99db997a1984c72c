#pragma once
/// \file
/// Host twins: host code that an emulated GPU runs in place of a kernel that is found at run time.
///
/// The emulated driver cannot run PTX, and it has no table of the program's `__global__` functions.
/// So a program registers, under the kernel's name, a function that does the same:
///
/// \code
/// void scale(const simt::ThreadBlock& block, float* data, float factor);   // the twin
/// emu::add_host_twin("scale", &scale);   // for: .entry scale(data, factor)
/// \endcode
///
/// The twin has the kernel's parameters, in the same order and with the same types, after the
/// block. If kernel and twin call the same `__host__ __device__` function, the work is written
/// once.

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>

#include "common/simt/thread_block.hpp"

namespace symm::emu {

/// The code that each thread of a launch runs.
using KernelThread = std::function<void(const simt::ThreadBlock&)>;

/// Makes the code of a launch. Copies the parameters from cuLaunchKernel's array, as the real
/// driver does, so the caller may change them when the launch has returned. Makes nothing if the
/// kernel has parameters and the array is null; the launch is then refused.
using HostTwin = std::function<KernelThread(void** parameters)>;

/// Registers the twin of all kernels of this name, in place of an earlier one. Safe from any
/// thread.
void add_host_twin(const std::string& name, HostTwin twin);

/// The same for a function that has the kernel's parameters after the block.
template <class... Parameters>
void add_host_twin(const std::string& name, void (*twin)(const simt::ThreadBlock&, Parameters...)) {
    add_host_twin(name, [twin](void** parameters) -> KernelThread {
        if (sizeof...(Parameters) > 0 && parameters == nullptr) {
            return nullptr;
        }
        [[maybe_unused]] std::size_t i = 0;  // braces: from left to right
        return [twin, copies = std::tuple<Parameters...>{*static_cast<const Parameters*>(
                          parameters[i++])...}](const simt::ThreadBlock& block) {
            std::apply([&](const Parameters&... each) { twin(block, each...); }, copies);
        };
    });
}

/// The function of a kernel that is linked into the program: for its twin what cudaGetFuncBySymbol
/// is for the kernel. Answers CUDA_ERROR_NOT_FOUND if no twin has this name.
CUresult get_function_of_twin(CUfunction* function, const std::string& name);

}  // namespace symm::emu
