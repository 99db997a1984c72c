#pragma once
/// \file
/// Contexts: streams, events, queued work and plain memory belong to one. An error in its work
/// makes a context unusable (lost).

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/emu/errors.hpp"
#include "common/emu/log.hpp"

namespace symm::emu {

class Stream;

/// A context. Never freed: a destroyed one may still be current in a thread, which must notice.
struct Context {
    explicit Context(int device_ordinal) : device(device_ordinal) {}

    const int device;
    int retained = 0;  ///< How often a primary context is retained.
    /// Why no work runs in it any more, for example a kernel's illegal access; else CUDA_SUCCESS.
    std::atomic<CUresult> lost{CUDA_SUCCESS};
    std::shared_ptr<Stream> default_stream;  ///< The stream that the null handle names.
    std::mutex streams_mutex;                ///< Guards what follows.
    std::map<std::thread::id, std::shared_ptr<Stream>> thread_streams;  ///< CU_STREAM_PER_THREAD
    /// All streams with work or a handle: destroyed ones stay until their work is done.
    std::vector<std::weak_ptr<Stream>> streams;

    CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
    CUresult state() const { return lost.load(std::memory_order_relaxed); }
    void check_state() const { refuse_if(state() != CUDA_SUCCESS, state()); }
};

/// Whether a call is refused in a lost context. Calls that wait, and cuCtxGetDevice, are not.
enum class Lost { kRefused, kAllowed };

/// The calling thread's context. Refuses with CUDA_ERROR_INVALID_CONTEXT if there is none, with
/// CUDA_ERROR_CONTEXT_IS_DESTROYED, or with the reason why the context is lost.
Context& current_context(Lost lost = Lost::kRefused);

/// Marks the context as lost and says why on stderr. Later calls that queue work or need a
/// usable context answer `result`. A context that is lost already keeps its first reason.
void lose(Context& context, CUresult result, const Text& why);

/// Waits until all work of all streams of the context is done.
void finish_all_work(Context& context);

}  // namespace symm::emu
