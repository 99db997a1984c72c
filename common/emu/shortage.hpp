#pragma once
/// \file
/// Reports a shortage in the process or the system: a line on stderr and a CUDA error. Not for the
/// memory of an emulated GPU, whose limit is SYMM_EMU_MEMORY.

#include <cuda.h>

#include <string_view>

namespace symm::emu {

/// For a system call that failed with `error` (errno): prints on stderr what `call` could not get
/// and which limit to check. Returns CUDA_ERROR_OUT_OF_MEMORY for memory and addresses,
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES for threads (EAGAIN), CUDA_ERROR_OPERATING_SYSTEM for file
/// descriptors and everything else. Needs no heap.
CUresult shortage(std::string_view call, int error);

}  // namespace symm::emu
