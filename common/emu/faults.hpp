#pragma once
/// \file
/// The door of every emulated function: counts the call, lets it fail where a test asked for that,
/// and turns it away before cuInit.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string_view>

namespace symm::emu {

/// In the place of a result: the process dies in that call, by SIGKILL.
inline constexpr std::nullopt_t kKilled = std::nullopt;

/// Lets the k-th call of `function` from now on (the next is 1) answer `result`, with no side
/// effect. A kernel launch counts as cuLaunchKernel. Throws std::invalid_argument for a name that
/// is not in driver_functions.inc or k < 1. Safe from any thread.
void fail_call(std::string_view function, long k, std::optional<CUresult> result);

/// Forgets all failures that are still to come, those of SYMM_EMU_FAIL too.
void clear_failures();

/// How often `function` was called in this process, failed calls too.
long calls_made(std::string_view function);

/// Whether driver_functions.inc lists this name.
bool is_driver_function(std::string_view name);

/// The listed names, by their text (`cuMemGetInfo`, not the `cuMemGetInfo_v2` behind it).
inline constexpr auto kDriverFunctions = std::to_array<std::string_view>({
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) #name,
#include "common/cuda/driver_functions.inc"
#undef SYMM_DRIVER_FUNCTION
});

/// A function's place in the list; at compile time, so that a misspelt name does not compile.
consteval std::size_t index_of_function(std::string_view name) {
    std::size_t index = 0;
    while (kDriverFunctions.at(index) != name) {
        ++index;
    }
    return index;
}

/// What has to have been done before a function is called.
enum class Needs { kInit, kNothing };

/// Counts the call and answers what it has to return at once, or CUDA_SUCCESS to go on.
CUresult enter(std::size_t function, Needs needs = Needs::kInit);

}  // namespace symm::emu

/// Goes on where `call` succeeds, and else returns its answer.
#define SYMM_EMU_TRY(call)                                          \
    if (const CUresult answer_ = (call); answer_ != CUDA_SUCCESS) { \
        return answer_;                                             \
    }                                                               \
    static_assert(true)

/// First line of every emulated function.
#define SYMM_EMU_ENTER(name) SYMM_EMU_TRY(::symm::emu::enter(::symm::emu::index_of_function(#name)))
