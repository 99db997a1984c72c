#pragma once
/// \file
/// Which kind of handle the ranks use: FABRIC where all of them can, else file descriptors.
///
/// FABRIC handles need a fabric manager with an IMEX channel, which containers rarely have. A device
/// attribute says only what the hardware could do: machines answer 1 for it and refuse cuMemCreate
/// with CUDA_ERROR_NOT_PERMITTED. So the probe creates memory and exports it. All ranks must agree:
/// a rank that chose alone would wait for handles that the others never send.
///
/// Source: CUDA Driver API, CUmemAllocationHandleType; NCCL's `ncclCuMemHandleType`
/// (src/misc/cudawrap.cc), which src/mnnvl.cc sets to FABRIC after such a probe.

#include <cuda.h>

#include <string>
#include <string_view>

#include "common/sys/deadline.hpp"

namespace symm {

class Rank;

/// A kind of handle, and why it is not FABRIC.
struct HandleChoice {
    CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::string why_not_fabric;  ///< Empty where the kind is FABRIC.
};

/// `FABRIC`, `POSIX file descriptor`, or `none` where no handle is sent.
std::string_view name_of(CUmemAllocationHandleType kind);

/// Tries FABRIC on one device: creates and exports one granule. The answer is kept for the process.
/// SYMM_FABRIC_ENABLE=0 skips it. Throws CudaError for an error that is no refusal.
HandleChoice probe_handle_kind(int device);

/// Collective: FABRIC where the probe of every rank succeeded, else file descriptors, with the
/// reason of the first rank that was refused.
HandleChoice agree_on_handle_kind(Rank& rank, Deadline deadline = Deadline::standard());

}  // namespace symm
