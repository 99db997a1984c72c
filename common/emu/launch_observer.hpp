#pragma once
/// \file
/// For traces: a function that is notified of each launch on an emulated GPU.

#include <atomic>

#include "common/emu/launch.hpp"

namespace symm::emu {

/// Called at the end of each launch, if it is not null. Most kernels do not come through
/// cuLaunchKernel, since they are linked into the program.
extern std::atomic<void (*)(CUstream, const KernelLaunch&, CUresult)> launch_observer;

}  // namespace symm::emu
