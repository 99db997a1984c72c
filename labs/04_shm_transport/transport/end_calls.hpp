#pragma once
/// \file
/// How a destructor waits for the kernels that use its memory.

#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/rank.hpp"

namespace symm {

/// For the destructor of an object whose memory is used by kernels with `timeout`: returns when all
/// work of the rank's GPU in this process has ended. Aborts the kernels if an exception causes the
/// destruction (then it tells the other ranks too, see Rank::tell_if_unwinding()), another rank has
/// failed or is gone, SYMM_TIMEOUT has passed, or the driver refuses to wait. From any thread.
void end_calls(Rank& rank, KernelTimeout& timeout) noexcept;

}  // namespace symm
