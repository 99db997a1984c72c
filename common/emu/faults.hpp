#pragma once
/// \file
/// The first step of every emulated function: counts the call, makes it fail where a test asked for
/// that, and refuses it before cuInit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace symm::emu {

/// For fail_call(), instead of a result: SIGKILL ends the process in that call.
inline constexpr std::nullopt_t kKilled = std::nullopt;

/// Makes the k-th call of `function` from now on (the next is 1) answer `result` and do nothing
/// else; cuStreamSynchronize still waits. A kernel launch counts as cuLaunchKernel. Throws
/// std::invalid_argument for a name that is not in driver_functions.inc and for k < 1. Safe from
/// any thread.
void fail_call(std::string_view function, long k, std::optional<CUresult> result);

/// Forgets all failures that are still to come, including those of SYMM_EMU_FAIL.
void clear_failures();

/// How often `function` was called in this process, failed calls included.
long calls_made(std::string_view function);

/// Whether driver_functions.inc lists this name.
bool is_driver_function(std::string_view name);

/// The listed names, as people write them (`cuMemGetInfo`, not its symbol `cuMemGetInfo_v2`).
inline constexpr auto kDriverFunctions = std::to_array<std::string_view>({
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) #name,
#include "common/cuda/driver_functions.inc"
#undef SYMM_DRIVER_FUNCTION
});

/// A function's index in the list; at compile time, so that a misspelt name does not compile.
consteval std::size_t index_of_function(std::string_view name) {
    std::size_t index = 0;
    while (kDriverFunctions.at(index) != name) {
        ++index;
    }
    return index;
}

/// Counts the call. Answers CUDA_SUCCESS where the function is to go on, else what it must return.
CUresult enter(std::size_t function);

}  // namespace symm::emu

/// Returns the answer of `call` unless it succeeds.
#define SYMM_EMU_TRY(call)                                          \
    if (const CUresult answer_ = (call); answer_ != CUDA_SUCCESS) { \
        return answer_;                                             \
    }                                                               \
    static_assert(true)

/// First line of every emulated function.
#define SYMM_EMU_ENTER(name) SYMM_EMU_TRY(::symm::emu::enter(::symm::emu::index_of_function(#name)))
