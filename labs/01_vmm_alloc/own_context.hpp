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

#include <utility>

namespace symm {

/// Owns a context made by cuCtxCreate. Move-only.
class OwnContext {
public:
    /// Makes a context on `device`. Leaves the calling thread's current context as it was. Throws
    /// CudaError.
    explicit OwnContext(int device);

    OwnContext(OwnContext&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
    OwnContext& operator=(OwnContext&& other) noexcept {
        std::swap(context_, other.context_);
        return *this;
    }
    OwnContext(const OwnContext&) = delete;
    OwnContext& operator=(const OwnContext&) = delete;
    /// Destroys the context with all its streams, events and cuMemAlloc memory. It must not be
    /// current on any other thread.
    ~OwnContext();

    /// For CurrentContext (common/cuda/device.hpp), which makes it current for a scope.
    CUcontext get() const { return context_; }

private:
    CUcontext context_ = nullptr;
};

}  // namespace symm
