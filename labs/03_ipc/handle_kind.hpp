#pragma once
/// \file
/// Which kind of handle the ranks use: FABRIC where all of them can, else file descriptors.
///
/// FABRIC handles need an IMEX channel (a device file), which containers rarely have. A
/// device attribute says only what the hardware could do: machines answer 1 for it and refuse
/// cuMemCreate with CUDA_ERROR_NOT_PERMITTED. So each rank tries it: it creates memory and exports
/// it. All ranks must agree: a rank that chose alone would wait for handles that the others never
/// send.
///
/// Source: CUDA Driver API, CUmemAllocationHandleType; NCCL's `ncclCuMemHandleType`
/// (src/misc/cudawrap.cc), which src/mnnvl.cc sets to FABRIC after such a try.

#include <cuda.h>

#include <string>
#include <string_view>

#include "common/ranks/rank.hpp"

namespace symm {

/// A kind of handle, and why it is not FABRIC.
struct HandleChoice {
    CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::string why_not_fabric;  ///< Empty where the kind is FABRIC.
};

/// Collective: FABRIC where every rank can create and export such memory, else file descriptors,
/// with the reason of the first rank that cannot. SYMM_FABRIC_ENABLE=0 on any rank leaves FABRIC
/// out. Throws CudaError on all ranks for an error other than those that mean "not here".
HandleChoice agree_on_handle_kind(Rank& rank);

}  // namespace symm
