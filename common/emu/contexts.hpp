#pragma once
/// \file
/// Contexts: whose work it is, and whether it is lost.

#include <cuda.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "common/emu/log.hpp"

namespace symm::emu {

class Stream;

/// A context. Never freed, so that a destroyed one is recognised wherever it is still current.
struct Context {
    Context(int device_ordinal, bool is_primary);

    const int device;
    const bool primary;
    bool alive = false;
    int retained = 0;  ///< Of a primary context.
    /// Why no work runs in it any more: a kernel's illegal access, say. CUDA_SUCCESS while well.
    std::atomic<CUresult> lost{CUDA_SUCCESS};
    std::shared_ptr<Stream> default_stream;  ///< Behind the null handle.
    std::mutex streams_mutex;                ///< Guards what follows.
    /// All streams with work or a handle: destroyed ones stay until their work is done.
    std::vector<std::weak_ptr<Stream>> streams;

    CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
};

/// Whether a call still means something in a lost context: one that waits does.
enum class Lost { kRefused, kAllowed };

/// The calling thread's context. Answers CUDA_ERROR_INVALID_CONTEXT where there is none,
/// CUDA_ERROR_CONTEXT_IS_DESTROYED, or why it is lost.
CUresult current_context(Context*& context, Lost lost = Lost::kRefused);

/// Marks the context lost, says why on stderr, and lets every later call in it answer `result`. The
/// first reason stays.
void lose(Context& context, CUresult result, const Text& why);

/// Waits until all work of all streams of the context is done.
void finish_all_work(Context& context);

}  // namespace symm::emu
