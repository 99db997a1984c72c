#pragma once
/// \file
/// A context of one's own, beside the primary one.
///
/// A context is a process's account on a GPU: its streams, events, modules and plain allocations.
/// The runtime and every library share the primary context (common/cuda/device.hpp), and so should
/// a program that works with them: a stream of one context is a stranger in another. One of one's
/// own is for work that ends together: destroying it takes all that was made in it.
///
/// Source: CUDA Driver API, "Context Management".

#include <cuda.h>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns a context made by cuCtxCreate. Move-only.
class OwnContext : public Owner<OwnContext, CUcontext> {
public:
    /// Makes a context on `device`. Leaves the calling thread's current context as it was. Throws
    /// CudaError.
    explicit OwnContext(int device);

    /// For CurrentContext (common/cuda/device.hpp), which makes it current for a scope.
    CUcontext get() const { return value_; }
    /// cuCtxDestroy: the context goes with all its streams, events and cuMemAlloc memory. It must
    /// not be current on any other thread.
    static void give_back(CUcontext context);
};

}  // namespace symm
