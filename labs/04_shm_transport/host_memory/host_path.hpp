#pragma once
/// \file
/// The two ways to make host memory that GPUs of several processes share; how ranks agree on one.
///
/// "Two paths" in README.md shows the calls of both: cuMem, and POSIX, which works with every
/// driver. cuMem is preferred. Some machines and containers refuse it, so probe_host_path() tries
/// all steps once with one granule. Only the refusals listed in host_path.cpp lead to POSIX; every
/// other error is thrown. `SYMM_CUMEM_HOST_ENABLE=0` selects POSIX without a probe.
///
/// Source: NCCL's ncclCuMemHostEnable in src/misc/cudawrap.cc (NCCL_CUMEM_HOST_ENABLE), which tries
/// cuMemCreate in the same way, but each rank by itself.

#include <optional>
#include <string>

#include "common/sys/named.hpp"

namespace symm {

class Rank;

/// A way to shared host memory.
enum class HostPath { kCuMem, kPosix };

constexpr auto names_of(HostPath) {
    return names("HostPath", "cuMem", "POSIX");
}

/// A path and, if it is not cuMem, the reason.
struct HostPathChoice {
    HostPath path = HostPath::kCuMem;
    std::string why_not_cumem;  ///< Empty if the path is cuMem.
};

/// Tries cuMem for `device`: makes a granule on its NUMA node, maps it, writes to it from the host,
/// exports and imports it. Leaves nothing behind. Throws CudaError for any error but a refusal.
HostPathChoice probe_host_path(int device);

/// Collective: cuMem if the probe of every rank succeeded, else POSIX, with the reason of the
/// first rank that cannot use cuMem. All ranks must take the same path: the file descriptor that
/// one rank sends is useless to a rank on the other path. With `wanted` this rank does not probe.
HostPathChoice agree_on_host_path(Rank& rank, std::optional<HostPath> wanted = {});

}  // namespace symm
