#pragma once
/// \file
/// CUDA graphs: work that is captured once and then launched with one call.

#include <cuda.h>

#include <functional>

#include "common/sys/owner.hpp"

namespace symm {

/// Whether work queued on the stream is being captured. Throws CudaError.
[[nodiscard]] bool is_captured(CUstream stream);
/// Whether the stream's capture has met an error. No graph will come of it, so nothing that was
/// queued since it began will run.
[[nodiscard]] bool is_capture_lost(CUstream stream) noexcept;

/// While it lives, the calling thread's driver calls neither break a capture that another thread
/// began in mode global nor are refused because of it. For calls that wait or create something, and
/// queue nothing that the capture should record.
class RelaxedCapture {
public:
    /// Throws CudaError.
    RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    ~RelaxedCapture();

private:
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  ///< Then the mode before it.
};

/// Owns an instantiated graph. Move-only.
class Graph : public Owner<Graph, CUgraphExec> {
public:
    /// Captures what `queue` puts on the stream, without running it. An exception from `queue` ends
    /// the capture and is passed on to the caller.
    static Graph capture(CUstream stream, const std::function<void()>& queue);

    void launch(CUstream stream) const;
    static void give_back(CUgraphExec executable);

private:
    using Owner::Owner;
};

}  // namespace symm
