#pragma once
/// \file
/// Work recorded once and replayed with one call.

#include <cuda.h>

#include <functional>
#include <utility>

namespace symm {

/// Owns an instantiated graph. Move-only.
class Graph {
public:
    /// Records what `queue` puts on the stream, without running it. An exception from `queue` ends
    /// the recording and goes on to the caller.
    static Graph capture(CUstream stream, const std::function<void()>& queue);
    Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
    Graph& operator=(Graph&& other) noexcept {
        std::swap(executable_, other.executable_);
        return *this;
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ~Graph();

    /// Queues one replay.
    void launch(CUstream stream) const;

private:
    explicit Graph(CUgraphExec executable) : executable_(executable) {}
    CUgraphExec executable_ = nullptr;
};

}  // namespace symm
