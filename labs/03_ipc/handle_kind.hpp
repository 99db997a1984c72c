#pragma once
/// \file
/// Which kind of handle the ranks use: FABRIC if all of them can, else file descriptors.
///
/// A device attribute tells only what the hardware supports, so each rank tries to create and
/// export memory for FABRIC. All ranks must agree: a rank that chose without asking the others
/// would wait for handles that they never send.
///
/// Source: CUDA Driver API, CUmemAllocationHandleType; NCCL's `ncclCuMemHandleType`
/// (src/misc/cudawrap.cc), which src/mnnvl.cc sets to FABRIC after it has tried in the same way.

#include <cuda.h>

#include <string>

#include "common/ranks/rank.hpp"

namespace symm {

/// A kind of handle and, if it is not FABRIC, the reason.
struct HandleChoice {
    CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::string why_not_fabric;  ///< Empty if the kind is FABRIC.
};

/// Collective: FABRIC if every rank can create and export such memory, else file descriptors,
/// with the reason of the first rank that cannot. SYMM_FABRIC_ENABLE=0 on any rank rules out
/// FABRIC. Any error that does not mean "FABRIC is refused" is thrown on all ranks.
HandleChoice agree_on_handle_kind(Rank& rank);

}  // namespace symm
