#pragma once
/// \file
/// The CUDA driver's functions as a table: of the real driver, or of the emulated one.

#include <cuda.h>

namespace symm {

/// One member for each function of functions.inc, named `cuMemCreate_` for cuMemCreate.
struct DriverTable {
#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) CUresult(*name##_) parameters = nullptr;
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION
};

}  // namespace symm
