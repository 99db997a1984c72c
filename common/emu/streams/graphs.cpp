#include "common/emu/streams/graphs.hpp"

#include <atomic>
#include <utility>

#include "common/emu/emulator.hpp"
#include "common/emu/streams/events.hpp"

namespace symm::emu {
namespace {

using State = Capture::State;

// The captures that have not ended. The mutex also guards the streams' references to them: they are
// rare, so one lock is enough. A thread that counts none takes no lock, which would order one
// rank's work after another's for ThreadSanitizer.
struct Captures {
    std::mutex mutex;
    std::vector<std::shared_ptr<Capture>> all;
    std::atomic<std::size_t> count{0};
};
Captures& captures() {
    static Captures& kept = *new Captures;
    return kept;
}

// The mode that this thread set with cuThreadExchangeStreamCaptureMode.
thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

// Removes the captures that have ended. Needs the mutex.
void forget_ended_captures() {
    std::erase_if(captures().all, [](const auto& one) { return one->state == State::kEnded; });
    captures().count.store(captures().all.size(), std::memory_order_relaxed);
}

// The capture a stream is in, or null. Needs the mutex. The end of a capture does not change its
// streams, so a stream that is still in an ended capture leaves it here.
Capture* capture_of(Stream& stream) {
    if (stream.capture != nullptr && stream.capture->state == State::kEnded) {
        stream.capture.reset();
        stream.in_capture.store(false, std::memory_order_relaxed);
    }
    return stream.capture.get();
}

void join(Stream& stream, std::shared_ptr<Capture> capture, std::set<std::size_t> after) {
    stream.capture = std::move(capture);
    stream.after = std::move(after);
    stream.in_capture.store(true, std::memory_order_relaxed);
}

// Locks the mutex if the stream may be in a capture. Other work takes no lock.
struct CaptureLock {
    explicit CaptureLock(Stream& stream) {
        if (stream.in_capture.load(std::memory_order_relaxed)) {
            lock = std::unique_lock(captures().mutex);
            capture = capture_of(stream);
        }
    }
    std::unique_lock<std::mutex> lock;
    Capture* capture = nullptr;
};

void check_active(const Capture& capture) {
    refuse_if(capture.state != State::kActive, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

[[noreturn]] void invalidate(Capture& capture, CUresult result) {
    capture.state = State::kInvalid;
    refuse(result);
}

// Invalidates the captures that a call disturbs, and refuses the call if there are any.
template <class Predicate>
void end_captures(const Predicate& disturbed) {
    if (captures().count.load(std::memory_order_relaxed) == 0) {
        return;
    }
    const std::lock_guard lock(captures().mutex);
    bool is_refused = false;
    for (const auto& capture : captures().all) {
        if (disturbed(*capture)) {
            capture->state = State::kInvalid;
            is_refused = true;
        }
    }
    refuse_if(is_refused, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUstreamCaptureStatus status_of(const Capture* capture) {
    return capture == nullptr                 ? CU_STREAM_CAPTURE_STATUS_NONE
           : capture->state == State::kActive ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                              : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

// The answer for a handle that is not known: null is a bad value, any other was destroyed.
template <class Handle>
CUresult unknown(Handle handle) {
    return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

void submit(Stream& stream, std::function<void()> work) {
    submit(stream, Operation{.run = std::move(work)});
}

void submit(Stream& stream, Operation operation) {
    operation.context = &stream.context();
    if (const CaptureLock found(stream); found.capture != nullptr) {
        check_active(*found.capture);
        std::vector<Operation>& nodes = found.capture->graph.nodes;
        stream.after.insert(nodes.size());
        nodes.push_back(std::move(operation));
        return;
    }
    stream.push(std::move(operation));
}

bool is_capturing(Stream& stream) {
    return CaptureLock(stream).capture != nullptr;
}

void refuse_while_capturing(Stream& stream) {
    if (const CaptureLock found(stream); found.capture != nullptr) {
        invalidate(*found.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
}

void refuse_while_capturing(const Context& context) {
    end_captures([&](const Capture& capture) { return capture.context == &context; });
}

void refuse_unsafe_call() {
    if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return;
    }
    end_captures([](const Capture& capture) {
        const bool mine = capture.thread == std::this_thread::get_id() &&
                          capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        return mine || (capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                        mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL);
    });
}

bool capture_record(Stream& stream, Event& event) {
    const CaptureLock found(stream);
    if (found.capture == nullptr) {
        return false;
    }
    check_active(*found.capture);
    const std::lock_guard event_lock(event.mutex);
    event.capture = stream.capture;
    event.after = stream.after;
    return true;
}

bool capture_wait(Stream& stream, CUstream handle, Event& event) {
    if (!is_capturing(stream)) {
        const std::lock_guard event_lock(event.mutex);
        if (event.capture == nullptr) {
            return false;
        }
    }
    const std::lock_guard lock(captures().mutex);
    const std::lock_guard event_lock(event.mutex);
    Capture* const mine = capture_of(stream);
    if (event.capture == nullptr) {
        if (mine != nullptr && event.latest.valid()) {  // a graph cannot wait for work outside it
            invalidate(*mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        }
        return mine != nullptr;  // never recorded: nothing to wait for
    }
    Capture& capture = *event.capture;
    check_active(capture);
    if (handle == nullptr) {
        invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (mine == nullptr) {
        join(stream, event.capture, event.after);
    } else if (mine == &capture) {
        stream.after.insert(event.after.begin(), event.after.end());
    } else {
        mine->state = State::kInvalid;
        invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    return true;
}

void abandon_capture(Stream& stream) {
    if (const CaptureLock found(stream); found.capture != nullptr) {
        const bool ends = found.capture->origin == &stream;
        found.capture->state = ends ? State::kEnded : State::kInvalid;
        forget_ended_captures();
    }
}

void cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    const auto stream = find_stream(handle);
    refuse_if(handle == nullptr || handle == CU_STREAM_LEGACY,
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    refuse_if(mode > CU_STREAM_CAPTURE_MODE_RELAXED);
    const std::lock_guard lock(captures().mutex);
    refuse_if(capture_of(*stream) != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    static cuuint64_t begun = 0;  // guarded by the mutex
    join(*stream,
         std::make_shared<Capture>(Capture{State::kActive,
                                           {},
                                           mode,
                                           std::this_thread::get_id(),
                                           stream.get(),
                                           &stream->context(),
                                           ++begun}),
         {});
    captures().all.push_back(stream->capture);
    ++captures().count;
}

void cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    const auto stream = find_stream(handle);
    refuse_if(status == nullptr);
    const CaptureLock found(*stream);
    *status = status_of(found.capture);
}

void cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                            CUgraph* graph, const CUgraphNode** nodes,
#if CUDA_VERSION >= 13000
                            const CUgraphEdgeData** edges,
#endif
                            size_t* count) {
    const auto stream = find_stream(handle);
    refuse_if(status == nullptr);
#if CUDA_VERSION >= 13000
    refuse_if(edges != nullptr, CUDA_ERROR_NOT_SUPPORTED);
#endif
    refuse_if(graph != nullptr || nodes != nullptr || count != nullptr, CUDA_ERROR_NOT_SUPPORTED);
    const CaptureLock found(*stream);
    *status = status_of(found.capture);
    if (id != nullptr && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        *id = found.capture->id;
    }
}

void cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    const auto stream = find_stream(handle);
    refuse_if(graph == nullptr);
    *graph = nullptr;
    auto captured = std::make_shared<Graph>();
    {
        const CaptureLock found(*stream);
        Capture* const capture = found.capture;
        refuse_if(capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
        if (capture->origin != stream.get()) {
            invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        refuse_if(capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                      capture->thread != std::this_thread::get_id(),
                  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        *captured = std::move(capture->graph);
        const State state = std::exchange(capture->state, State::kEnded);
        forget_ended_captures();
        refuse_if(state == State::kInvalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        refuse_if(stream->after.size() < captured->nodes.size(),
                  CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    const Changing e;
    *graph = e->keep(e->graphs, std::move(captured));
}

void cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    refuse_if(*mode > CU_STREAM_CAPTURE_MODE_RELAXED);
    *mode = std::exchange(mode_of_thread, *mode);
}

void cuGraphInstantiate(CUgraphExec* executable, CUgraph handle, unsigned long long flags) {
    auto graph = find_in(emulator().graphs, handle, unknown(handle));
    refuse_if(executable == nullptr || flags != 0);
    const Changing e;
    *executable = e->keep(e->executables, std::move(graph));  // never changes: no copy is needed
}

void cuGraphLaunch(CUgraphExec executable, CUstream handle) {
    const auto stream = find_stream(handle);
    auto graph = find_in(emulator().executables, executable, unknown(executable));
    submit(*stream, [graph = std::move(graph)] {
        InOrder in_order;
        for (const Operation& node : graph->nodes) {
            in_order.perform(node);
        }
    });
}

void cuGraphExecDestroy(CUgraphExec executable) {
    erase_from(emulator().executables, executable, unknown(executable));
}

void cuGraphDestroy(CUgraph handle) {
    erase_from(emulator().graphs, handle, unknown(handle));
}

}  // namespace symm::emu
