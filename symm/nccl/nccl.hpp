#pragma once
/// \file
/// The program's NCCL: its functions by the names of nccl.h, in the namespaces `nccl` and `pnccl`.
///
/// A function is looked up at its first call: the next one after this library in the program's
/// order of libraries, so that another library of LD_PRELOAD comes in between; else the one in the
/// libnccl.so.2 that the program has loaded itself, whose names are then local to it (PyTorch).
/// Where there is none, the call returns kInvalidUsage, and the log names the function.

#include <cuda.h>

#include <cstddef>

struct ncclComm;
struct ncclWindow_vidmem;

namespace symm::drop_in {

/// ncclResult_t.
enum Result : int {
    kSuccess = 0,
    kUnhandledCudaError = 1,
    kSystemError = 2,
    kInternalError = 3,
    kInvalidArgument = 4,
    kInvalidUsage = 5,
    kRemoteError = 6,
    kInProgress = 7,
};

/// nccl.h's NCCL_WIN_COLL_SYMMETRIC and NCCL_SHRINK_ABORT.
inline constexpr int kSymmetricWindow = 1;
inline constexpr int kShrinkAbort = 1;

namespace nccl {
#define SYMM_NCCL_FUNCTION(name, parameters, arguments) Result name parameters;
#include "symm/nccl/nccl_functions.inc"
const char* GetLastError(ncclComm* comm);
}  // namespace nccl

/// By their names for profilers, which no other library replaces.
namespace pnccl {
#define SYMM_NCCL_CALLED(name, parameters, arguments) Result name parameters;
#include "symm/nccl/nccl_functions.inc"
}  // namespace pnccl

}  // namespace symm::drop_in
