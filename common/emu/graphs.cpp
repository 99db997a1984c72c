#include "common/emu/graphs.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/events.hpp"

namespace symm::emu {
namespace {

using State = Capture::State;

// Guards all captures and the streams' references to them. They are rare, so one lock is enough.
std::mutex& capture_mutex() {
    static std::mutex& kept = *new std::mutex;
    return kept;
}

// The captures that have not ended, and their number: a thread that finds none takes no lock, which
// would order one rank's work after another's for ThreadSanitizer.
std::vector<std::shared_ptr<Capture>>& captures() {
    static auto& kept = *new std::vector<std::shared_ptr<Capture>>;
    return kept;
}
std::atomic<std::size_t> capture_count{0};

// The mode that this thread set with cuThreadExchangeStreamCaptureMode.
thread_local CUstreamCaptureMode mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

// Removes the captures that have ended. Needs the mutex.
void forget_ended_captures() {
    std::erase_if(captures(), [](const auto& one) { return one->state == State::kEnded; });
    capture_count.store(captures().size(), std::memory_order_relaxed);
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

// Locks the mutex if the stream may be in a capture. Other work takes no lock, which would order
// one rank's work after another's for ThreadSanitizer.
struct CaptureLock {
    explicit CaptureLock(Stream& stream) {
        if (stream.in_capture.load(std::memory_order_relaxed)) {
            lock = std::unique_lock(capture_mutex());
            capture = capture_of(stream);
        }
    }
    std::unique_lock<std::mutex> lock;
    Capture* capture = nullptr;
};

// Null is a bad value; any other handle that is not known was destroyed.
template <class Handle>
CUresult unknown(Handle handle) {
    return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult submit(const std::shared_ptr<Stream>& stream, Operation operation) {
    if (const CaptureLock found(*stream); found.capture != nullptr) {
        if (found.capture->state != State::kActive) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        std::vector<Operation>& nodes = found.capture->graph.nodes;
        stream->after.insert(nodes.size());
        nodes.push_back(std::move(operation));
        return CUDA_SUCCESS;
    }
    return stream->push(std::move(operation));
}

bool is_capturing(Stream& stream) {
    return CaptureLock(stream).capture != nullptr;
}

CUresult refuse_while_capturing(Stream& stream) {
    const CaptureLock found(stream);
    if (found.capture == nullptr) {
        return CUDA_SUCCESS;
    }
    found.capture->state = State::kInvalid;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_unsafe_call() {
    if (mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED ||
        capture_count.load(std::memory_order_relaxed) == 0) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(capture_mutex());
    CUresult result = CUDA_SUCCESS;
    for (const auto& capture : captures()) {
        const bool mine = capture->thread == std::this_thread::get_id() &&
                          capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        if (mine || (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                     mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            capture->state = State::kInvalid;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

std::optional<CUresult> capture_record(Stream& stream, Event& event) {
    const CaptureLock found(stream);
    if (found.capture == nullptr) {
        return std::nullopt;
    }
    if (found.capture->state != State::kActive) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    const std::lock_guard event_lock(event.mutex);
    event.capture = stream.capture;
    event.after = stream.after;
    return CUDA_SUCCESS;
}

std::optional<CUresult> capture_wait(Stream& stream, CUstream handle, Event& event) {
    if (!is_capturing(stream)) {
        const std::lock_guard event_lock(event.mutex);
        if (event.capture == nullptr) {
            return std::nullopt;
        }
    }
    const std::lock_guard lock(capture_mutex());
    const std::lock_guard event_lock(event.mutex);
    Capture* const mine = capture_of(stream);
    if (event.capture == nullptr) {
        if (mine == nullptr) {
            return std::nullopt;
        }
        if (!event.latest.valid()) {
            return CUDA_SUCCESS;  // never recorded: nothing to wait for
        }
        mine->state = State::kInvalid;  // a graph cannot wait for work outside it
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    Capture& capture = *event.capture;
    if (capture.state != State::kActive) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (handle == nullptr) {
        capture.state = State::kInvalid;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (mine == nullptr) {
        join(stream, event.capture, event.after);
    } else if (mine == &capture) {
        stream.after.insert(event.after.begin(), event.after.end());
    } else {
        capture.state = mine->state = State::kInvalid;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    return CUDA_SUCCESS;
}

void abandon_capture(Stream& stream) {
    if (const CaptureLock found(stream); found.capture != nullptr) {
        const bool ends = found.capture->origin == &stream;
        found.capture->state = ends ? State::kEnded : State::kInvalid;
        forget_ended_captures();
    }
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    SYMM_EMU_ENTER(cuStreamBeginCapture);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (handle == nullptr || handle == CU_STREAM_LEGACY) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(capture_mutex());
    if (capture_of(*stream) != nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    join(*stream,
         std::make_shared<Capture>(
             Capture{State::kActive, {}, mode, std::this_thread::get_id(), stream.get()}),
         {});
    captures().push_back(stream->capture);
    ++capture_count;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    SYMM_EMU_ENTER(cuStreamIsCapturing);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (status == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CaptureLock found(*stream);
    *status = found.capture == nullptr                 ? CU_STREAM_CAPTURE_STATUS_NONE
              : found.capture->state == State::kActive ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                       : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
    SYMM_EMU_ENTER(cuStreamEndCapture);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (graph == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = nullptr;
    auto captured = std::make_shared<Graph>();
    {
        const CaptureLock found(*stream);
        Capture* const capture = found.capture;
        if (capture == nullptr) {
            return CUDA_ERROR_ILLEGAL_STATE;
        }
        if (capture->origin != stream.get()) {
            capture->state = State::kInvalid;
            return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        }
        if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
            capture->thread != std::this_thread::get_id()) {
            return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        }
        *captured = std::move(capture->graph);
        const State state = std::exchange(capture->state, State::kEnded);
        forget_ended_captures();
        if (state == State::kInvalid) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        if (stream->after.size() < captured->nodes.size()) {
            return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    *graph = e.new_handle_as<CUgraph>();
    e.graphs[*graph] = std::move(captured);
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    SYMM_EMU_ENTER(cuThreadExchangeStreamCaptureMode);
    if (*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *mode = std::exchange(mode_of_thread, *mode);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph handle, unsigned long long flags) {
    SYMM_EMU_ENTER(cuGraphInstantiate);
    Emulator& e = emulator();
    auto graph = find_in(e.graphs, handle);
    if (graph == nullptr) {
        return unknown(handle);
    }
    if (executable == nullptr || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const WriteLock lock(e.mutex);
    *executable = e.new_handle_as<CUgraphExec>();
    e.executables[*executable] = std::move(graph);  // a graph never changes: no copy is needed
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
    SYMM_EMU_ENTER(cuGraphLaunch);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    auto graph = find_in(emulator().executables, executable);
    if (graph == nullptr) {
        return unknown(executable);
    }
    return submit(stream, {&stream->context(), [graph = std::move(graph)] {
                               for (const Operation& node : graph->nodes) {
                                   perform(node);
                               }
                           }});
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    SYMM_EMU_ENTER(cuGraphExecDestroy);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    return e.executables.erase(executable) > 0 ? CUDA_SUCCESS : unknown(executable);
}

CUresult cuGraphDestroy(CUgraph handle) {
    SYMM_EMU_ENTER(cuGraphDestroy);
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    return e.graphs.erase(handle) > 0 ? CUDA_SUCCESS : unknown(handle);
}

}  // namespace symm::emu
