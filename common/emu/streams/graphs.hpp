#pragma once
/// \file
/// Stream capture and graphs.
///
/// While a stream captures, work that is queued on it becomes a node of a graph, after the nodes
/// that the stream has seen so far; events pass these on to other streams (README.md has a
/// drawing). A graph runs its nodes one after the other, in the order of capture.

#include <cuda.h>

#include <thread>
#include <vector>

#include "common/emu/streams/streams.hpp"

namespace symm::emu {

struct Event;

struct Graph {
    std::vector<Operation> nodes;
};

/// Guarded by the mutex of graphs.cpp.
struct Capture {
    enum class State { kActive, kInvalid, kEnded };
    State state = State::kActive;
    Graph graph;
    CUstreamCaptureMode mode;
    std::thread::id thread;  ///< The thread that began it.
    const Stream* origin;    ///< The stream on which it began.
    const Context* context;  ///< The stream's.
    cuuint64_t id;           ///< Its number, from 1 on.
};

/// Queues work of the stream's context on it, or adds it to the graph that the stream captures.
void submit(Stream& stream, Operation work);
void submit(Stream& stream, std::function<void()> work);

/// Whether work submitted to the stream would be captured.
[[nodiscard]] bool is_capturing(Stream& stream);

/// If the stream captures, makes the capture invalid and refuses with
/// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
void refuse_while_capturing(Stream& stream);
/// The same if any stream of the context captures, whatever the modes of captures and threads.
void refuse_while_capturing(const Context& context);

/// The same for calls that the manual names potentially unsafe. Two kinds of capture forbid them
/// to this thread: a capture that this thread began, unless its mode is relaxed, and a capture that
/// another thread began in mode global. With cuThreadExchangeStreamCaptureMode a thread can free
/// itself from one or both.
void refuse_unsafe_call();

/// Makes the record part of the stream's capture. Returns false if the stream does not capture.
[[nodiscard]] bool capture_record(Stream& stream, Event& event);

/// Makes the wait part of the stream's capture, or lets the stream join the event's capture.
/// Returns false if neither is in a capture.
[[nodiscard]] bool capture_wait(Stream& stream, CUstream handle, Event& event);

/// For a stream that is destroyed: its capture can no longer be completed.
void abandon_capture(Stream& stream);

}  // namespace symm::emu
