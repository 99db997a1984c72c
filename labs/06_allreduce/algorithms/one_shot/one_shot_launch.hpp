#pragma once
/// \file
/// Launches by packets: of one shot, and of the halves that share its memory (halves/packets.hpp).

#include <bit>

#include "labs/06_allreduce/algorithms/scratch_launch.hpp"

namespace symm {

/// A packet carries eight bytes of data.
inline constexpr ScratchLayout kPacketLayout{kOneShotLimit / 8};
static_assert(std::has_single_bit(kPacketLayout.per_sender));

/// Queues the kernel once. Throws CudaError.
void launch_one_shot(CUstream stream, LaunchShape shape, const ScratchCall& call);

}  // namespace symm
