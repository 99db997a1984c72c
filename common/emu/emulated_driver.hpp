#pragma once
/// \file
/// The emulated driver: every function of driver_functions.inc, with the real one's name, meaning
/// and result codes, in namespace symm::emu. common/cuda chooses between it and libcuda.

#include <cuda.h>

namespace symm::emu {

#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) CUresult name parameters;
#include "common/cuda/driver_functions.inc"
#undef SYMM_DRIVER_FUNCTION

}  // namespace symm::emu
