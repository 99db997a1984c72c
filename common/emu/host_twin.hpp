#pragma once
/// \file
/// Host twins: host code that an emulated GPU runs in place of a kernel that is found at run time.
///
/// The emulated driver cannot run PTX, and it has no table of the program's `__global__` functions.
/// So a program registers, under the kernel's name, a function that does the same:
///
/// \code
/// void scale(const simt::ThreadBlock& block, float* data, float factor);   // the twin
/// emu::add_host_twin("scale", emu::kHostTwin<&scale>);   // of: .entry scale(data, factor)
/// \endcode
///
/// The twin has the kernel's parameters, in the same order and with the same types, after the
/// block. Where kernel and twin call the same `__host__ __device__` function, the work is written
/// once.

#include <cuda.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "common/simt/thread_block.hpp"

namespace symm::emu {

/// Makes what each thread of a launch runs. Copies the parameters from cuLaunchKernel's array, as
/// the real driver does, so the caller may change them when the launch has returned. Makes nothing
/// where the kernel has parameters and the array is null; the launch is then refused.
using HostTwin = std::function<void(const simt::ThreadBlock&)> (*)(void** parameters);

namespace detail {
template <auto twin>
struct Bound;
template <class... Parameters, void (*twin)(const simt::ThreadBlock&, Parameters...)>
struct Bound<twin> {
    static std::function<void(const simt::ThreadBlock&)> call(void** parameters) {
        if (sizeof...(Parameters) > 0 && parameters == nullptr) {
            return nullptr;
        }
        return copy(parameters, std::index_sequence_for<Parameters...>{});
    }
    template <std::size_t... i>
    static std::function<void(const simt::ThreadBlock&)> copy(void** parameters,
                                                              std::index_sequence<i...>) {
        return [copies = std::tuple(*static_cast<const Parameters*>(parameters[i])...)](
                   const simt::ThreadBlock& block) { twin(block, std::get<i>(copies)...); };
    }
};
}  // namespace detail

/// A function `void (const simt::ThreadBlock&, parameters...)` as a HostTwin.
template <auto twin>
inline constexpr HostTwin kHostTwin = &detail::Bound<twin>::call;

/// Registers the twin of all kernels of this name, in place of an earlier one. Safe from any
/// thread.
void add_host_twin(const std::string& name, HostTwin twin);

/// The function of a kernel that is linked into the program: for its twin what cudaGetFuncBySymbol
/// is for the kernel. Answers CUDA_ERROR_NOT_FOUND where no twin has this name.
CUresult get_function_of_twin(CUfunction* function, const std::string& name);

}  // namespace symm::emu
