#pragma once
/// \file
/// One rank's NCCL communicator, for the comparisons.

#include <cuda.h>

#include <vector>

#include "common/nccl/nccl_library.hpp"

namespace symm {

/// Owns a communicator and the windows registered with it. Neither copied nor moved. Construction,
/// destruction and calls are collective, except unique_id(). The caller sends rank 0's unique id to
/// the other ranks.
class NcclCommunicator {
public:
    /// ncclCommInitRank on the current device.
    NcclCommunicator(const NcclLibrary& library, NcclLibrary::UniqueId id, int ranks, int rank);
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;
    ~NcclCommunicator();

    /// A new unique id, for rank 0 to share.
    static NcclLibrary::UniqueId unique_id(const NcclLibrary& library);

    /// Registers memory from ncclMemAlloc (or any VMM memory) as a symmetric window.
    /// Throws std::runtime_error where the library is too old or refuses.
    void register_window(CUdeviceptr pointer, std::size_t bytes);

    /// Queues an all-reduce (kNcclFloat or kNcclBfloat16, kNcclSum) on the stream.
    void all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type, int op,
                    CUstream stream);

private:
    const NcclLibrary& library_;
    NcclLibrary::Comm comm_ = nullptr;
    std::vector<NcclLibrary::Window> windows_;
};

}  // namespace symm
