#pragma once
/// \file
/// Counts the calls of each emulated function, and makes those fail that a test has chosen.

#include <cuda.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace symm::emu {

/// For fail_call(), instead of a result: SIGKILL ends the process in that call.
inline constexpr std::nullopt_t kKilled = std::nullopt;

/// Makes the k-th call of `function` from now on (the next is 1) answer `result` and do nothing
/// else; cuStreamSynchronize still waits. A kernel launch counts as cuLaunchKernel. Throws
/// std::invalid_argument for a name that is not in functions.inc and for k < 1. Safe from any
/// thread.
void fail_call(std::string_view function, long k, std::optional<CUresult> result);

/// Forgets all failures that are still to come, including those of SYMM_EMU_FAIL.
void clear_failures();

/// How often `function` was called in this process, failed calls included.
long calls_made(std::string_view function);

/// The names in functions.inc, as people write them (`cuMemGetInfo`, not its symbol
/// `cuMemGetInfo_v2`).
inline constexpr auto kDriverFunctions = std::to_array<std::string_view>({
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) #name,
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
});

/// A function's place in kDriverFunctions, whose size() is returned for any other name.
constexpr std::size_t index_of_function(std::string_view name) {
    std::size_t index = 0;
    while (index < kDriverFunctions.size() && kDriverFunctions[index] != name) {
        ++index;
    }
    return index;
}

/// A call that is to fail.
struct PlannedFailure {
    std::size_t function = 0;        ///< Its place in kDriverFunctions.
    long call = 1;                   ///< Counted from the start of the process.
    std::optional<CUresult> result;  ///< None: the process is killed in that call.
};
void plan(const PlannedFailure& failure);

/// Before the first step of every emulated function: refuses with CUDA_ERROR_NOT_INITIALIZED in a
/// child of fork() whose parent has called cuInit(). It takes no lock, as another thread of the
/// parent may have held one. (A real driver, 580.159, answers so too, but some calls with handles
/// of the parent's succeed or crash.)
void refuse_if_forked();

/// The first step of every emulated function: counts the call. Throws Refused if it is to fail, and
/// before cuInit().
void enter(std::size_t function);

}  // namespace symm::emu
