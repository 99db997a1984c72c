#pragma once
/// \file
/// The launch of one shot, for others than the communicator.

#include "common/cuda/gpu.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"

namespace symm {

/// Queues the kernel once. Throws CudaError.
void launch_one_shot(CUstream stream, LaunchShape shape, const MailboxCall& call);

}  // namespace symm
