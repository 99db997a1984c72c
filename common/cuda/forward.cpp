// The driver's functions by their real names: each calls the table of the driver in use.

#include "common/cuda/driver.hpp"

extern "C" {

#define SYMM_DRIVER_FUNCTION(name, parameters, arguments) \
    CUresult CUDAAPI name parameters {                    \
        return symm::driver_table().name##_ arguments;    \
    }
#include "common/driver/functions.inc"
#undef SYMM_DRIVER_FUNCTION

}  // extern "C"
