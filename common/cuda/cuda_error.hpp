#pragma once
/// \file
/// A failed driver call as an exception. Not in check.hpp, so that launch.hpp, which every file
/// with kernels includes and nvcc reads twice, needs no formatting library.

#include <cuda.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace symm {

/// A driver call that failed.
class CudaError : public std::runtime_error {
public:
    CudaError(CUresult result, const std::string& text) : runtime_error(text), result_(result) {}
    CUresult result() const { return result_; }

private:
    CUresult result_;
};

/// The result's name, `CUDA_ERROR_INVALID_VALUE`.
std::string_view name_of(CUresult result);

/// What to do about this result; empty if its name says enough.
std::string_view remedy(CUresult result);

namespace detail {
[[noreturn]] void throw_cuda_error(CUresult result, const std::string& call);
}  // namespace detail

}  // namespace symm
