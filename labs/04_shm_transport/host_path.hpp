#pragma once
/// \file
/// The two ways to host memory that GPUs of several processes share, and how ranks agree on one.
///
/// - cuMem: memory of a NUMA node made by `cuMemCreate` (CU_MEM_LOCATION_TYPE_HOST_NUMA). It has a
///   handle like device memory, and the same calls export, import and map it.
/// - POSIX: shared memory of the operating system, mapped with mmap and then made known to the
///   driver with `cuMemHostRegister`. It works with every driver, and costs a second owner.
///
/// cuMem is the better one, where it works: containers that forbid get_mempolicy(2) refuse it
/// (docker: --cap-add SYS_NICE allows it), and no attribute says so. Hence the probe does the whole
/// thing once with one granule.
///
/// `SYMM_CUMEM_HOST_ENABLE=0` leaves cuMem out without asking.
///
/// Source: NCCL's ncclCuMemHostEnable in src/misc/cudawrap.cc (NCCL_CUMEM_HOST_ENABLE), which tries
/// cuMemCreate in the same way.

#include <optional>
#include <string>
#include <string_view>

#include "common/sys/deadline.hpp"

namespace symm {

class Rank;

/// A way to shared host memory.
enum class HostPath { kCuMem, kPosix };

/// `cuMem` or `POSIX`.
std::string_view name_of(HostPath path);

/// What `--path` says: `auto` (empty), `cumem` or `posix`. Throws UsageError for another.
std::optional<HostPath> host_path(std::string_view name);

/// A path, and why not the better one.
struct HostPathChoice {
    HostPath path = HostPath::kCuMem;
    std::string why_not_cumem;  ///< Empty where the path is cuMem, or POSIX was asked for.
};

/// Tries cuMem for `device`: makes a granule on its NUMA node, maps it, writes to it from the host,
/// exports and imports it. Leaves nothing behind and never throws for what the driver refuses.
HostPathChoice probe_host_path(int device);

/// Collective: cuMem where every rank's probe succeeded, else POSIX, with the reason of the first
/// rank that could not. A rank that chose alone would send a descriptor the others cannot read.
/// `wanted` leaves the probe out; it must be the same on all ranks, else all throw
/// std::invalid_argument.
HostPathChoice agree_on_host_path(Rank& rank, std::optional<HostPath> wanted = {},
                                  Deadline deadline = Deadline::standard());

}  // namespace symm
