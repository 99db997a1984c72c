#pragma once
/// \file
/// Streams: each has a thread that does the queued work in order.
///
/// The thread starts with the first work and ends with the stream. All streams are non-blocking:
/// they do not wait for the null stream, and it does not wait for them.

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "common/emu/streams/contexts.hpp"

namespace symm::emu {

struct Capture;

/// A kernel that has started, and may not have ended.
class Started {
public:
    virtual ~Started() = default;
    /// Waits until a dependent launch may start beside it.
    virtual void wait_until_triggered() = 0;
    /// Waits for its end. More calls return at once.
    virtual void finish() = 0;
};

/// A piece of work.
struct Operation {
    Context* context = nullptr;
    std::function<void()> run;
    /// Whether it is done even in a lost context: waits for an event have to end.
    Lost in_lost_context = Lost::kRefused;
    /// Instead of `run`, for a kernel: starts it. `before`: the kernel before it, or null. Returns
    /// null if it could not start.
    std::function<std::unique_ptr<Started>(Started* before)> start;
    bool is_dependent = false;  ///< A kernel that may start before the one before it has ended.
};

/// Does operations in their order. Only a dependent kernel may start before the kernel before it
/// has ended, and of these two are alive at most.
class InOrder {
public:
    ~InOrder() { finish(); }
    /// Does the operation unless its context is lost; a kernel may not have ended then. If it runs
    /// out of memory, the context is lost.
    void perform(const Operation& operation);
    /// Waits for the last kernel.
    void finish();
    /// Whether a kernel may not have ended.
    bool is_unfinished() const { return last_ != nullptr; }

private:
    std::unique_ptr<Started> last_;
};

class Stream : public std::enable_shared_from_this<Stream> {
public:
    explicit Stream(Context& context) : context_(context) {}

    Context& context() const { return context_; }

    /// Queues the operation. Refuses with shortage()'s error if the stream's thread cannot start.
    void push(Operation operation);
    /// Waits until all that is queued now is done.
    void finish();
    bool is_idle() const;
    /// To be called when no more work comes: the thread does what is queued, then ends.
    void close();

    /// The capture it is in, and the nodes that come before its next one. For graphs.cpp, under its
    /// mutex.
    std::shared_ptr<Capture> capture;
    std::set<std::size_t> after;
    /// False if `capture` is null. Read without a lock, so work that is not captured takes none.
    std::atomic<bool> in_capture{false};

private:
    static void work(std::shared_ptr<Stream> self);

    Context& context_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Operation> queue_;
    std::uint64_t pushed_ = 0;  ///< Operations queued so far.
    std::uint64_t done_ = 0;    ///< How many of them are done.
    bool has_thread_ = false;
    bool closed_ = false;
};

/// A new stream, listed in Context::streams.
std::shared_ptr<Stream> new_stream(Context& context);

/// The stream of a handle; the null handle names the current context's default stream. Refuses with
/// CUDA_ERROR_INVALID_CONTEXT without a context, with CUDA_ERROR_INVALID_HANDLE for an unknown
/// handle, or with the reason why the stream's context is lost.
std::shared_ptr<Stream> find_stream(CUstream handle, Lost lost = Lost::kRefused);

}  // namespace symm::emu
