#pragma once
/// \file
/// What the process or the system has run out of, said in a line and as a CUDA error. An emulated
/// GPU's memory is no part of this: SYMM_EMU_MEMORY limits that.

#include <cuda.h>

#include <string_view>

namespace symm::emu {

/// For a system call that failed with `error` (errno): says on stderr what `call` could not get and
/// which limits there are. Returns CUDA_ERROR_OUT_OF_MEMORY for memory and addresses,
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES for threads (EAGAIN), CUDA_ERROR_OPERATING_SYSTEM for file
/// descriptors and everything else. Needs no heap.
CUresult shortage(std::string_view call, int error);

}  // namespace symm::emu
