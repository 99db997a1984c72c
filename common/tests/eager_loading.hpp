#pragma once
/// \file
/// For tests whose kernels wait for each other on one GPU.

#include <cstdlib>

namespace symm {

// Else the driver loads a kernel's code at its first launch, for which it waits until the kernels
// that already run have ended. One of them may be waiting for the kernel that is launched. Set
// before main(), and so before the driver reads it.
[[maybe_unused]] inline const int kEagerLoading = setenv("CUDA_MODULE_LOADING", "EAGER", 1);

}  // namespace symm
