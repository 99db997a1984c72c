#include "common/emu/graphs.hpp"

#include <algorithm>

#include "common/emu/emulated_driver.hpp"
#include "common/emu/emulator.hpp"
#include "common/emu/events.hpp"

namespace symm::emu {
namespace {

// Guards Stream::capture and all captures. Captures are set-up: one lock for all of them is enough.
std::mutex& capture_mutex() {
    static std::mutex& kept = *new std::mutex;
    return kept;
}

// Begun by this thread, those that have ended among them until the next begins.
thread_local std::vector<std::weak_ptr<Capture>> captures_of_thread;

std::vector<int>& reached_by(Capture& capture, const Stream& stream) {
    return std::find_if(capture.members.begin(), capture.members.end(),
                        [&](const auto& member) { return member.stream.lock().get() == &stream; })
        ->reached;
}

void add_to(std::vector<int>& nodes, const std::vector<int>& more) {
    for (const int node : more) {
        if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
            nodes.push_back(node);
        }
    }
}

// Whether every node lies before one of `ends`, or is one.
bool all_joined(const Graph& graph, const std::vector<int>& ends) {
    std::vector<bool> seen(graph.nodes.size());
    for (const int end : ends) {
        seen[end] = true;
    }
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {  // a node comes after earlier ones only
        if (!seen[i]) {
            return false;
        }
        for (const int before : graph.nodes[i].after) {
            seen[before] = true;
        }
    }
    return true;
}

void set_capture(Stream& stream, std::shared_ptr<Capture> capture) {
    stream.in_capture.store(capture != nullptr, std::memory_order_relaxed);
    stream.capture = std::move(capture);
}

// Takes all its streams out of the capture.
void end_capture(Capture& capture) {
    capture.ended = true;
    for (const auto& member : capture.members) {
        if (const auto stream = member.stream.lock()) {
            set_capture(*stream, nullptr);
        }
    }
}

CUresult add_node(const std::shared_ptr<Stream>& stream, Operation operation) {
    Capture& capture = *stream->capture;
    if (capture.invalidated) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    std::vector<int>& reached = reached_by(capture, *stream);
    capture.graph.nodes.push_back({std::move(operation), std::move(reached)});
    reached = {static_cast<int>(capture.graph.nodes.size()) - 1};
    return CUDA_SUCCESS;
}

// Null is a bad value; anything else that is not known was destroyed.
template <class Handle>
CUresult unknown(Handle handle) {
    return handle == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

template <class Map>
auto find_in(Map& map, typename Map::key_type handle) {
    const ReadLock lock(emulator().mutex);
    const auto found = map.find(handle);
    return found != map.end() ? found->second : nullptr;
}

}  // namespace

CUresult submit(const std::shared_ptr<Stream>& stream, Operation operation) {
    if (is_capturing(*stream)) {
        const std::lock_guard lock(capture_mutex());
        if (stream->capture != nullptr) {
            return add_node(stream, std::move(operation));
        }
    }
    return stream->push(std::move(operation));
}

bool is_capturing(const Stream& stream) {
    return stream.in_capture.load(std::memory_order_relaxed);
}

CUresult refuse_while_capturing(Stream& stream) {
    if (!is_capturing(stream)) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(capture_mutex());
    if (stream.capture == nullptr) {
        return CUDA_SUCCESS;
    }
    stream.capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_in_capturing_thread() {
    if (captures_of_thread.empty()) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(capture_mutex());
    CUresult result = CUDA_SUCCESS;
    for (const auto& weak : captures_of_thread) {
        const auto capture = weak.lock();
        if (capture != nullptr && !capture->ended &&
            capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
            capture->invalidated = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

bool capture_record(Stream& stream, Event& event, CUresult& result) {
    if (!is_capturing(stream)) {
        return false;
    }
    const std::lock_guard lock(capture_mutex());
    if (stream.capture == nullptr) {
        return false;
    }
    if (stream.capture->invalidated) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return true;
    }
    const std::lock_guard event_lock(event.mutex);
    event.capture = stream.capture;
    event.after = reached_by(*stream.capture, stream);
    return true;
}

bool capture_wait(const std::shared_ptr<Stream>& stream, CUstream handle, Event& event,
                  CUresult& result) {
    if (!is_capturing(*stream)) {
        const std::lock_guard event_lock(event.mutex);
        if (event.capture == nullptr) {
            return false;
        }
    }
    const std::lock_guard lock(capture_mutex());
    const std::lock_guard event_lock(event.mutex);
    if (event.capture == nullptr) {
        if (stream->capture == nullptr) {
            return false;
        }
        if (event.latest != nullptr) {  // a graph cannot depend on what is outside it
            stream->capture->invalidated = true;
            result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        }
        return true;
    }
    Capture& capture = *event.capture;
    if (capture.invalidated) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (is_default_stream(handle)) {
        capture.invalidated = true;
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else if (stream->capture != nullptr && stream->capture != event.capture) {
        capture.invalidated = true;
        stream->capture->invalidated = true;
        result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    } else if (stream->capture != nullptr) {
        add_to(reached_by(capture, *stream), event.after);
    } else {
        set_capture(*stream, event.capture);
        capture.members.push_back({stream, event.after});
    }
    return true;
}

void abandon_capture(Stream& stream) {
    const std::lock_guard lock(capture_mutex());
    if (const std::shared_ptr<Capture> capture = stream.capture) {
        capture->invalidated = true;
        if (capture->origin == &stream) {
            end_capture(*capture);
        }
        set_capture(stream, nullptr);
    }
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    SYMM_EMU_ENTER(cuStreamBeginCapture);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (is_default_stream(handle)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(capture_mutex());
    if (stream->capture != nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->members.push_back({stream, {}});
    std::erase_if(captures_of_thread, [](const auto& weak) {
        const auto former = weak.lock();
        return former == nullptr || former->ended;
    });
    captures_of_thread.push_back(capture);
    set_capture(*stream, std::move(capture));
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
    std::shared_ptr<Capture> capture;
    {
        const std::lock_guard lock(capture_mutex());
        capture = stream->capture;
        if (capture == nullptr) {
            return CUDA_ERROR_ILLEGAL_STATE;
        }
        if (capture->origin != stream.get()) {
            capture->invalidated = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        }
        if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
            capture->thread != std::this_thread::get_id()) {
            return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
        }
        end_capture(*capture);
        if (capture->invalidated) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        if (!all_joined(capture->graph, capture->members.front().reached)) {
            capture->invalidated = true;
            return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
        capture->invalidated = true;  // for events that still know it
    }
    Emulator& e = emulator();
    const WriteLock lock(e.mutex);
    *graph = e.new_handle_as<CUgraph>();
    e.graphs[*graph] = std::make_shared<const Graph>(std::move(capture->graph));
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    SYMM_EMU_ENTER(cuStreamIsCapturing);
    std::shared_ptr<Stream> stream;
    SYMM_EMU_TRY(find_stream(handle, stream));
    if (status == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(capture_mutex());
    *status = stream->capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
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
    e.executables[*executable] = std::move(graph);  // a graph is never changed: no copy is needed
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
    Operation operation;
    operation.context = &stream->context();
    operation.run = [graph = std::move(graph)] {
        for (const Node& node : graph->nodes) {
            perform(node.operation);
        }
    };
    return submit(stream, std::move(operation));
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
