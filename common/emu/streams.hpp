#pragma once
/// \file
/// Streams: work done in order, later, by a thread of the stream's own.
///
/// The thread starts with the first work and ends with the stream. The null stream is CUDA's legacy
/// default stream: its work waits for what all blocking streams of the context were given before,
/// and their work for what it was given before. CU_STREAM_PER_THREAD is taken for the same stream.

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/emu/contexts.hpp"

namespace symm::emu {

struct Capture;

/// A piece of work.
struct Operation {
    Context* context = nullptr;
    std::function<void()> run;
    /// Whether it is done even when the context is lost: an event has to complete.
    bool even_if_lost = false;
};

/// Does the operation unless its context is lost. The context is lost where memory runs out in it.
void perform(const Operation& operation);

class Stream : public std::enable_shared_from_this<Stream> {
public:
    enum class Kind { kDefault, kBlocking, kNonBlocking };
    Stream(Context& context, Kind kind) : context_(context), kind_(kind) {}

    Context& context() const { return context_; }

    /// Queues the operation. Answers with shortage() where no thread can be had.
    CUresult push(Operation operation);
    /// Waits until all that is queued now is done.
    void finish();
    bool is_idle() const;
    /// No more work comes. What is queued is still done, then the thread ends.
    void close();

    /// What it is capturing into; null while it is not. For graphs.cpp, under its mutex.
    std::shared_ptr<Capture> capture;
    /// Whether that is set: work that is not captured then needs no look under that mutex.
    std::atomic<bool> in_capture{false};

private:
    static void work(std::shared_ptr<Stream> self);
    std::vector<Operation> legacy_waits();
    void finish(std::uint64_t until);
    void queue(Operation operation);

    Context& context_;
    const Kind kind_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Operation> queue_;
    std::uint64_t pushed_ = 0;  ///< Operations ever queued.
    std::uint64_t done_ = 0;
    bool has_thread_ = false;
    bool closed_ = false;
};

/// A stream that its context knows.
std::shared_ptr<Stream> new_stream(Context& context, Stream::Kind kind);

/// The context's streams, those that are destroyed but have work left among them.
std::vector<std::shared_ptr<Stream>> streams_of(Context& context);

/// What a stream's handle names, the null handle being the current context's default stream.
/// Answers CUDA_ERROR_INVALID_CONTEXT without a context, CUDA_ERROR_INVALID_HANDLE for no stream,
/// or why the stream's context is lost.
CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream, Lost lost = Lost::kRefused);

/// Whether the handle is one of the null stream's.
inline bool is_default_stream(CUstream handle) {
    return handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

}  // namespace symm::emu
