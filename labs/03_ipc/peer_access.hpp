#pragma once
/// \file
/// Whether ranks can reach each other's memory at all: asked before anything is made, since later the
/// driver only says CUDA_ERROR_INVALID_DEVICE of a cuMemSetAccess.

namespace symm {

/// Throws std::runtime_error, with what to do about it, where kernels of `device` cannot reach memory of
/// device `owner`; CudaError. Ordinals of this process; an owner that it does not see is let pass.
void require_peer_access(int device, int owner);

}  // namespace symm
