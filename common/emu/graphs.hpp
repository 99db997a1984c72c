#pragma once
/// \file
/// Stream capture and graphs.
///
/// While a stream captures, what is submitted becomes a node instead of work. A node knows the
/// nodes it comes after: those its stream had reached. An event recorded in a capturing stream
/// keeps that stream's nodes; a stream that waits for it joins the capture and comes after them
/// (fork), and when the origin waits for an event of the other, the branches meet again (join).
///
///     origin:  A ---record--- B ------------wait--- D
///     other:         \--wait--- C ---record--/              nodes A B C D; D after B and C
///
/// A graph is replayed node by node in the order of capture, which honours all of that; branches
/// are not run at once.

#include <cuda.h>

#include <memory>
#include <thread>
#include <vector>

#include "common/emu/streams.hpp"

namespace symm::emu {

struct Event;

struct Node {
    Operation operation;
    std::vector<int> after;
};

struct Graph {
    std::vector<Node> nodes;
};

/// A capture under way. Guarded by the mutex of graphs.cpp.
struct Capture {
    Graph graph;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::thread::id thread;  ///< That began it.
    Stream* origin = nullptr;
    bool invalidated = false;
    bool ended = false;  ///< No stream is in it any more.
    struct Member {
        std::weak_ptr<Stream> stream;
        std::vector<int> reached;  ///< The nodes the stream's next one comes after.
    };
    std::vector<Member> members;
};

/// Queues the operation on the stream, or adds it to the graph the stream is capturing.
CUresult submit(const std::shared_ptr<Stream>& stream, Operation operation);

/// Whether work submitted to the stream would be captured.
bool is_capturing(const Stream& stream);

/// CUDA_SUCCESS, or, for a stream that is capturing: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and the
/// capture is invalid from now on.
CUresult refuse_while_capturing(Stream& stream);

/// As refuse_while_capturing(), for a call that the manual calls unsafe in a thread that captures,
/// whatever stream it names: all its captures are invalid from now on, but for relaxed ones.
CUresult refuse_in_capturing_thread();

/// Makes the record part of the stream's capture. False where the stream is not capturing.
bool capture_record(Stream& stream, Event& event, CUresult& result);

/// Makes the wait part of a capture: the stream's, or the event's, which the stream then joins.
/// False where neither is in one.
bool capture_wait(const std::shared_ptr<Stream>& stream, CUstream handle, Event& event,
                  CUresult& result);

/// For a stream that is destroyed: its capture cannot be completed.
void abandon_capture(Stream& stream);

}  // namespace symm::emu
