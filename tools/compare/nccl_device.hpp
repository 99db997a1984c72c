#pragma once
/// \file
/// The host side of nccl_two_shot.hpp: NCCL's device communicator, for the comparison.

#include <cuda.h>

#include <cstddef>
#include <functional>

#include "common/cuda/gpu.hpp"
#include "common/nccl/nccl_communicator.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

/// Options common to all calls.
struct NcclDeviceOptions {
    NcclLibrary::Window in;  ///< Symmetric windows of the communicator.
    NcclLibrary::Window out;
    DataType type;
    ReduceOp op;
    int ranks;
    LaunchShape most;  ///< The largest launch.
};

/// Queues an AllReduce of the first `count` elements of the windows; in place, only the first
/// window is used. All ranks pass the same shape, not larger than the options'.
using NcclDeviceCall =
    std::function<void(CUstream stream, LaunchShape shape, std::size_t count, bool in_place)>;

/// Calls by the rank's new device communicator (ncclDevCommCreate), which the result owns.
/// Collective; `nccl` must outlive it. Throws std::runtime_error if this program was built without
/// NCCL's headers, with those of another version than the library's, or if NCCL refuses.
NcclDeviceCall nccl_device_call(NcclCommunicator& nccl, const NcclDeviceOptions& options);

}  // namespace symm
