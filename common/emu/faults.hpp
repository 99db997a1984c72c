#pragma once
/// \file
/// The first step of every emulated function: counts the call, lets it fail where a test asked for
/// that, and refuses it before cuInit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace symm::emu {

/// Instead of a result: the process is killed in that call, by SIGKILL.
inline constexpr std::nullopt_t kKilled = std::nullopt;

/// Lets the k-th call of `function` from now on (the next is 1) do nothing but answer `result`. A
/// kernel launch counts as cuLaunchKernel. Throws std::invalid_argument for a name that is not in
/// driver_functions.inc and for k < 1. Safe from any thread.
void fail_call(std::string_view function, long k, std::optional<CUresult> result);

/// Forgets all failures that are still to come, also those of SYMM_EMU_FAIL.
void clear_failures();

/// How often `function` was called in this process, failed calls included.
long calls_made(std::string_view function);

/// Whether driver_functions.inc lists this name.
bool is_driver_function(std::string_view name);

/// The listed names, as people write them (`cuMemGetInfo`, not the `cuMemGetInfo_v2` behind it).
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

/// Counts the call. Answers what the function has to return at once, or CUDA_SUCCESS to go on.
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
