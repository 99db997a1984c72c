#pragma once
/// \file
/// The name that a function of the driver has in its library. For some functions <cuda.h> defines
/// the name as a macro for a newer version: `SYMM_SYMBOL_NAME(cuMemGetInfo)` is
/// `"cuMemGetInfo_v2"`.

#include <cuda.h>

#define SYMM_TEXT_OF(name) #name
#define SYMM_SYMBOL_NAME(name) SYMM_TEXT_OF(name)
