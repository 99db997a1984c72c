#pragma once
/// \file
/// Work recorded once and replayed with one call.

#include <cuda.h>

#include <functional>

#include "common/sys/owner.hpp"

namespace symm {

/// Owns an instantiated graph. Move-only.
class Graph : public Owner<Graph, CUgraphExec> {
public:
    /// Records what `queue` puts on the stream, without running it. An exception from `queue` ends
    /// the recording and goes on to the caller.
    static Graph capture(CUstream stream, const std::function<void()>& queue);

    /// Queues one replay.
    void launch(CUstream stream) const;
    static void give_back(CUgraphExec executable);

private:
    using Owner::Owner;
};

}  // namespace symm
