// The driver's functions by their real names, as common/cuda/forward.cpp: each calls the driver
// that libsymm.so uses, real or emulated.

#include <cuda.h>

#include "symm/c/symm.h"

extern "C" {

#define SYMM_DRIVER_FUNCTION(name, parameters, arguments)                                 \
    CUresult CUDAAPI name parameters {                                                    \
        static const auto drivers =                                                       \
            reinterpret_cast<CUresult(CUDAAPI*) parameters>(symm_driver_function(#name)); \
        return drivers != nullptr ? drivers arguments : CUDA_ERROR_NOT_INITIALIZED;       \
    }
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION

}  // extern "C"
