#pragma once
/// \file
/// Turns the result of a driver call that failed into an exception, or into a line of the log.
///
/// \code
/// cu_check(cuMemCreate(&handle, bytes, &properties, 0), "cuMemCreate(size={})", bytes);
/// \endcode The text names the call and the values that matter. The driver's answer and what to do
/// are added here: `cuMemCreate(size=12345) failed: CUDA_ERROR_INVALID_VALUE. Check sizes and ...`.

#include <cuda.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "common/cuda/cuda_error.hpp"
#include "common/sys/format.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Throws CudaError unless the call succeeded. The text is formatted only then.
template <class... Arguments>
void cu_check(CUresult result, Format<std::type_identity_t<Arguments>...> call,
              const Arguments&... arguments) {
    if (result != CUDA_SUCCESS) {
        detail::throw_cuda_error(result, text_of(call, arguments...));
    }
}

/// Makes a call that some machines refuse. Returns the error if the result is one of `results`,
/// nothing if the call succeeds. Throws CudaError for any other result: that is a failure, not a
/// refusal.
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
