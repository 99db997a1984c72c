#pragma once
/// \file
/// Contexts: what a call belongs to, and whether an error has made it unusable (lost).

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "common/emu/log.hpp"

namespace symm::emu {

class Stream;

/// A context. Never freed, so that a thread where a destroyed one is current recognises it.
struct Context {
    explicit Context(int device_ordinal) : device(device_ordinal) {}

    const int device;
    int retained = 0;  ///< Of a primary context.
    /// Why no work runs in it any more, for example a kernel's illegal access; else CUDA_SUCCESS.
    std::atomic<CUresult> lost{CUDA_SUCCESS};
    std::shared_ptr<Stream> default_stream;  ///< Behind the null handle.
    std::mutex streams_mutex;                ///< Guards what follows.
    /// All streams with work or a handle: destroyed ones stay until their work is done.
    std::vector<std::weak_ptr<Stream>> streams;

    CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
    CUresult state() const { return lost.load(std::memory_order_relaxed); }
};

/// Whether a call is refused in a lost context. One that waits is not.
enum class Lost { kRefused, kAllowed };

/// The calling thread's context. Answers CUDA_ERROR_INVALID_CONTEXT where there is none,
/// CUDA_ERROR_CONTEXT_IS_DESTROYED, or why the context is lost.
CUresult current_context(Context*& context, Lost lost = Lost::kRefused);

/// Marks the context as lost and says why on stderr. Every later call in it answers `result`. A
/// context that is lost already keeps its first reason.
void lose(Context& context, CUresult result, const Text& why);

/// Waits until all work of all streams of the context is done.
void finish_all_work(Context& context);

}  // namespace symm::emu
