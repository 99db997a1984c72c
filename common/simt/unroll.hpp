#pragma once
/// \file
/// SYMM_UNROLL before a loop asks nvcc to unroll it; its host compiler, which knows no such pragma,
/// reads nothing.

#ifdef __CUDA_ARCH__
#define SYMM_UNROLL _Pragma("unroll")
#else
#define SYMM_UNROLL
#endif
