#pragma once
/// \file
/// A second context, in addition to the primary one.
///
/// A context holds what a process has made on a GPU: streams, events, modules, plain allocations.
/// The runtime and every library share the device's primary context (common/cuda/device.hpp), and
/// a program that works with them should use it as well: a stream of one context cannot be used in
/// another. A second context is for work that ends together: destroying the context frees
/// everything that was made in it.
///
/// Source: CUDA Driver API, "Context Management".

#include <cuda.h>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"
#include "common/sys/owner.hpp"

namespace symm {

/// Owns a context made by cuCtxCreate. Move-only.
class OwnContext : public Owner<OwnContext, CUcontext> {
public:
    /// Makes a context on `device`; it is the calling thread's current context until it is
    /// destroyed. Throws CudaError.
    explicit OwnContext(int device) {
        CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
        cu_check(cuCtxCreate(&context, nullptr, CU_CTX_SCHED_AUTO, device_handle(device)),
                 "cuCtxCreate(device={})", device);
#else
        cu_check(cuCtxCreate(&context, CU_CTX_SCHED_AUTO, device_handle(device)),
                 "cuCtxCreate(device={})", device);
#endif
        value_ = context;
    }

    CUcontext get() const {
        return value_;
    }
    /// cuCtxDestroy: destroys the context with all its streams, events and cuMemAlloc memory. The
    /// context that was current before is current again.
    static void give_back(CUcontext context) {
        cu_check(cuCtxDestroy(context), "cuCtxDestroy()");
    }
};

}  // namespace symm
