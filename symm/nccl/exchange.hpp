#pragma once
/// \file
/// Bytes of every rank for every rank, through the program's NCCL: the meeting of a communicator.

#include <cuda.h>

#include <atomic>
#include <cstddef>

#include "symm/nccl/nccl.hpp"

namespace symm::drop_in {

/// A rank's part of an ncclComm.
struct Place {
    ncclComm* comm;
    int rank, ranks, device;
};

/// Exchanges by ncclAllGather, on a stream of its own. Its memory and its stream are kept for the
/// next communicator: freeing would wait for kernels, which may wait for this rank. Ranks may pass
/// different numbers of bytes, all of which travel as kMostBytes.
class Exchange {
public:
    static constexpr std::size_t kMostBytes = 256;  ///< Of one rank.
    static constexpr int kMostRanks = 8;

    /// `aborted` ends the waits. Throws std::runtime_error.
    Exchange(const Place& place, const std::atomic<bool>& aborted);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange();

    /// Puts the `bytes` bytes at `mine` of every rank into `all`, by rank. Waits for all ranks, as
    /// long as NCCL does. Throws std::runtime_error after an abort or an error of NCCL.
    void allgather(const void* mine, void* all, std::size_t bytes);
    /// Exchanges so far.
    int count() const { return count_; }

private:
    struct Kept {
        CUdeviceptr memory;  ///< This rank's bytes, then those of all ranks.
        CUstream stream;
        char* host;  ///< The same on the host.
    };
    static auto& kept_of(int device);
    void wait() const;

    Place place_;
    const std::atomic<bool>& aborted_;
    Kept kept_{};
    int count_ = 0;
    bool idle_ = true;
};

}  // namespace symm::drop_in
