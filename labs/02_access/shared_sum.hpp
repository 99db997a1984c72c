#pragma once
/// \file
/// What this lab is for, in one function: a buffer on one device that every device writes and
/// reads.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// What each device saw of the shared buffer.
struct SharedSum {
    std::vector<int> devices;         ///< Who took part: the owner and all that may use its memory.
    std::vector<std::uint64_t> sums;  ///< The sum of the whole buffer, as each of them read it.
    std::uint64_t expected = 0;       ///< What the host computed without any device.
    bool right() const;
};

/// Takes `bytes` (a multiple of 4, not 0) of `owner`'s memory; every user writes its stripe, then
/// every user sums the whole. `gpus[i]` is device i. Throws CudaError.
SharedSum sum_shared_buffer(std::span<const Gpu> gpus, const PeerMatrix& matrix, int owner,
                            std::size_t bytes);

}  // namespace symm
