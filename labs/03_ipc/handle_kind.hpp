#pragma once
/// \file
/// Which kind of handle memory travels by, and how ranks agree on one.
///
/// - FABRIC: 64 bytes that mean the same memory everywhere on an NVLink fabric, also on another
/// host.
///   They can be printed, sent over TCP, broadcast. Needs a running fabric manager with IMEX, and a
///   right that containers rarely have.
/// - POSIX file descriptor: works wherever the driver does, on one host. A descriptor means
/// something in
///   one process only, so it has to be sent by the kernel (SCM_RIGHTS).
///
/// A device's attribute says only what the hardware could: machines answer 1 for FABRIC and refuse
/// cuMemCreate with CUDA_ERROR_NOT_PERMITTED. Hence the probe makes an allocation and exports it.
/// Source: CUDA Driver API, CUmemAllocationHandleType; NCCL's `ncclCuMemHandleType` (src/misc/cudawrap.cc),
/// which src/mnnvl.cc sets to FABRIC after such a probe.

#include <cuda.h>

#include <string>
#include <string_view>

#include "common/sys/deadline.hpp"

namespace symm {

class Rank;

/// A kind of handle, and what was wrong with a better one.
struct HandleChoice {
    CUmemAllocationHandleType kind = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::string why_not_fabric;  ///< Empty where the kind is FABRIC.
};

/// `FABRIC`, `POSIX file descriptor`, or `none` where no handle travels.
std::string_view name_of(CUmemAllocationHandleType kind);

/// Tries FABRIC on one device by making and exporting one granule. Answers of a process are
/// remembered. SYMM_FABRIC_ENABLE=0 leaves it out. Throws CudaError for an answer that is no refusal.
HandleChoice probe_handle_kind(int device);

/// Collective: FABRIC where every rank's probe succeeded, else descriptors, with the reason of the
/// first rank that could not. One rank choosing alone would leave the others waiting for what never
/// comes.
HandleChoice agree_on_handle_kind(Rank& rank, Deadline deadline = Deadline::standard());

}  // namespace symm
