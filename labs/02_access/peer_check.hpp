#pragma once
/// \file
/// The self-test: does data really arrive between two devices that the driver calls peers?
///
/// On some machines the driver says yes, yet writes are lost, and no call fails (PEER_MATRIX.md).
/// So each pair is tested before it is used, in every way that the labs use it:
///
/// | step | accessor | owner | catches |
/// |---|---|---|---|
/// | 1 | | poisons its memory | old data mistaken for new |
/// | 2 | stores a pattern (kernel) | | |
/// | 3 | | compares | stores that were lost or went elsewhere |
/// | 4 | | stores another pattern | |
/// | 5 | loads and compares (kernel) | | loads that return wrong data |
/// | 6 | copies a third pattern there (copy engine) | | |
/// | 7 | | compares | copies that were lost |
///
/// vLLM does the same (gpu_p2p_access_check in custom_all_reduce_utils.py). NCCL trusts the driver;
/// its users can set NCCL_P2P_DISABLE.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// Tests one pair with `bytes` (a multiple of 4, not 0). Returns which step went wrong and what was
/// seen, or nothing if all data arrived. A driver call that fails throws CudaError.
std::string check_pair(const Gpu& accessor, const Gpu& owner, std::size_t bytes);

/// Tests all usable pairs of the matrix, excludes those that fail, and returns them. `gpus[i]` is
/// device i. Throws CudaError.
std::vector<Pair> check_peers(PeerMatrix& matrix, std::span<const Gpu> gpus, std::size_t bytes);

}  // namespace symm
