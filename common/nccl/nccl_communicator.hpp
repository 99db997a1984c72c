#pragma once
/// \file
/// One rank's NCCL communicator, for the comparisons.

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "common/nccl/nccl_library.hpp"
#include "common/sys/creator_process.hpp"

namespace symm {

class Rank;

/// Owns a communicator and the windows registered with it. Neither copied nor moved. Construction,
/// destruction and calls are collective, except unique_id(). The caller sends rank 0's unique id to
/// the other ranks.
class NcclCommunicator {
public:
    /// ncclCommInitRank on the current device.
    NcclCommunicator(const NcclLibrary& library, NcclLibrary::UniqueId id, int ranks, int rank);
    NcclCommunicator(const NcclCommunicator&) = delete;
    ~NcclCommunicator();

    /// A new unique id, for rank 0 to share.
    static NcclLibrary::UniqueId unique_id(const NcclLibrary& library);

    /// The version of the NCCL that made it, such as `2.28.9`.
    std::string version() const { return library_.version(); }

    /// Registers memory from ncclMemAlloc (or any VMM memory) as a symmetric window, which the
    /// communicator deregisters. Throws std::runtime_error if NCCL refuses.
    NcclLibrary::Window register_window(CUdeviceptr address, std::size_t bytes);
    /// Deregisters the windows, if there are any. Logs an error.
    void deregister_windows();

    /// ncclDevCommCreate: from an ncclDevCommRequirements to an ncclDevComm, both of the library's
    /// own version, 2.28 or newer. Throws std::runtime_error.
    void create_device_communicator(const void* requirements, void* dev_comm);
    /// ncclDevCommDestroy. Logs an error.
    void destroy_device_communicator(const void* dev_comm);

    /// Queue a call on the stream. `type` and `op` are numbers of nccl.h, `part` is the elements of
    /// one rank's part.
    void all_reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type, int op,
                    CUstream stream);
    void reduce_scatter(CUdeviceptr in, CUdeviceptr out, std::size_t part, int type, int op,
                        CUstream stream);
    void all_gather(CUdeviceptr in, CUdeviceptr out, std::size_t part, int type, CUstream stream);
    void broadcast(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type, int root,
                   CUstream stream);
    void reduce(CUdeviceptr in, CUdeviceptr out, std::size_t count, int type, int op, int root,
                CUstream stream);
    /// A group of ncclSend and ncclRecv: `in` and `out` have a part of `part` bytes for each rank.
    void all_to_all(CUdeviceptr in, CUdeviceptr out, std::size_t part, CUstream stream);

private:
    const NcclLibrary& library_;
    int ranks_;
    NcclLibrary::Comm comm_ = nullptr;
    std::vector<NcclLibrary::Window> windows_;
    CreatorProcess creator_;
};

/// NCCL on every rank, or null on every rank with the reason in `why_not`. A caller that does not
/// want NCCL gives its reason there beforehand. Collective.
[[nodiscard]] std::unique_ptr<NcclLibrary> load_nccl(Rank& rank, std::string& why_not);

/// A communicator of all ranks. Collective; `library` must outlive it.
[[nodiscard]] std::unique_ptr<NcclCommunicator> connect_nccl(Rank& rank,
                                                             const NcclLibrary& library);

}  // namespace symm
