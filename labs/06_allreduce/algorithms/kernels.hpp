#pragma once
/// \file
/// What the communicator needs of an algorithm's kernels: defined beside the launches in the
/// algorithm's folder, and listed in algorithm.cpp.

#include "common/cuda/launch_order.hpp"
#include "labs/06_allreduce/algorithms/algorithm.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"
#include "labs/06_allreduce/algorithms/workspace.hpp"

namespace symm {

/// A call that is ready for its launches.
struct QueuedCall : KernelParams {
    CUstream stream;
    LaunchShape shape;
    LaunchOrder order;    ///< Of kernels that wait for the one before them (mailbox.hpp).
    std::size_t at_once;  ///< The most elements of one launch.
    bool in_windows;      ///< Peers can reach the buffers that they use.
    /// This rank's buffers, at the addresses at which each rank has them mapped, or if they lie in
    /// no window, this rank's; of a call with parts, what that rank uses of them. For algorithms
    /// whose ranks meet.
    Buffers seen[kMaxBarrierRanks];
};

struct AlgorithmKernels {
    /// How many blocks of the kernel, of `threads` threads each, the current device keeps resident.
    unsigned (*resident_blocks)(DataType type, int ranks, unsigned threads);
    /// Queues the call's launches. Throws CudaError.
    void (*queue)(Workspace& workspace, const QueuedCall& call);
    /// Bytes of the algorithm's own memory on each rank (Workspace::at), zeroed before the first
    /// use. Rows of one algorithm share it.
    std::size_t (*memory)(int ranks) = [](int) { return std::size_t{0}; };
    /// Gives this rank's memory other contents than zeros.
    void (*initialize)(CUdeviceptr memory, int ranks) = [](CUdeviceptr, int) {};
    /// Makes what large calls need besides: called once, before the first. Collective. Null:
    /// nothing.
    void (*prepare)(Workspace& workspace) = nullptr;
    /// Throws std::invalid_argument if the stream cannot have a call now.
    void (*require_turn)(const Workspace& workspace, CUstream stream) = [](const Workspace&,
                                                                           CUstream) {};
};

}  // namespace symm
