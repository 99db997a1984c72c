#pragma once
/// \file
/// The parameters of kernels that use peers' buffers in place.

#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

TwoShotParams two_shot_params(const Workspace& workspace, const QueuedCall& call);

}  // namespace symm
