#pragma once
/// \file
/// What a driver call's result becomes: an exception, or a line in the log.
///
/// \code
/// cu_check(cuMemCreate(&handle, bytes, &properties, 0), "cuMemCreate(size={})", bytes);
/// \endcode
/// The text names the call and the values that matter. What the driver said and what to do about it
/// are added here: `cuMemCreate(size=12345) failed: CUDA_ERROR_INVALID_VALUE. Sizes must be ...`.

#include <cuda.h>
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "common/cuda/cuda_error.hpp"

namespace symm {

/// Throws CudaError unless the call succeeded. The text is formatted only then.
template <class... Arguments>
void cu_check(CUresult result, fmt::format_string<Arguments...> call, Arguments&&... arguments) {
    if (result != CUDA_SUCCESS) {
        detail::throw_cuda_error(result, fmt::format(call, std::forward<Arguments>(arguments)...));
    }
}

/// The twin for destructors: logs what failed and returns whether the call succeeded.
template <class... Arguments>
bool cu_check_nothrow(CUresult result, fmt::format_string<Arguments...> call,
                      Arguments&&... arguments) noexcept {
    if (result == CUDA_SUCCESS) {
        return true;
    }
    try {
        detail::log_cuda_error(result, fmt::format(call, std::forward<Arguments>(arguments)...));
    } catch (...) {  // out of memory while reporting: nothing is left to say
    }
    return false;
}

/// For a call that some machines refuse: makes it, and returns the refusal where it answers one of `results`,
/// nothing where it succeeds. Throws CudaError for any other answer: that is a failure, no refusal.
template <class Call>
std::optional<CudaError> refusal(std::initializer_list<CUresult> results, const Call& call) {
    try {
        call();
        return std::nullopt;
    } catch (const CudaError& error) {
        if (std::find(results.begin(), results.end(), error.result()) == results.end()) {
            throw;
        }
        return error;
    }
}

}  // namespace symm
