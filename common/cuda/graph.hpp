#pragma once
/// \file
/// CUDA graphs: work that is captured once and then launched with one call.

#include <cuda.h>

#include <functional>

#include "common/sys/owner.hpp"

namespace symm {

/// Whether work queued on the stream is being captured. Throws CudaError.
bool is_captured(CUstream stream);

/// Owns an instantiated graph. Move-only.
class Graph : public Owner<Graph, CUgraphExec> {
public:
    /// Captures what `queue` puts on the stream, without running it. An exception from `queue` ends
    /// the capture and is passed on to the caller.
    static Graph capture(CUstream stream, const std::function<void()>& queue);

    /// Queues one launch of the graph.
    void launch(CUstream stream) const;
    static void give_back(CUgraphExec executable);

private:
    using Owner::Owner;
};

}  // namespace symm
