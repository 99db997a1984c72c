#pragma once
/// \file
/// SYMM_UNROLL before a loop asks nvcc to unroll it; for the host compiler, which does not know
/// this pragma, it is empty.

#ifdef __CUDA_ARCH__
#define SYMM_UNROLL _Pragma("unroll")
#else
#define SYMM_UNROLL
#endif
