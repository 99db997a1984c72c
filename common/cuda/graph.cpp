#include "common/cuda/graph.hpp"

#include "common/cuda/check.hpp"

namespace symm {
namespace {

// A captured graph, not yet instantiated.
class Recorded : public Owner<Recorded, CUgraph> {
public:
    explicit Recorded(CUgraph graph) : Owner(graph) {}
    static void give_back(CUgraph graph) { cu_check(cuGraphDestroy(graph), "cuGraphDestroy()"); }
};

}  // namespace

bool is_captured(CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cu_check(cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing()");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool is_capture_lost(CUstream stream) noexcept {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

RelaxedCapture::RelaxedCapture() {
    cu_check(cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode()");
}

RelaxedCapture::~RelaxedCapture() {
    cuThreadExchangeStreamCaptureMode(&mode_);
}

Graph Graph::capture(CUstream stream, const std::function<void()>& queue) {
    cu_check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             "cuStreamBeginCapture()");
    CUgraph graph = nullptr;
    try {
        queue();
    } catch (...) {
        cuStreamEndCapture(stream, &graph);  // its result is ignored: the first error is thrown
        const Recorded to_be_destroyed(graph);
        throw;
    }
    cu_check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture()");
    const Recorded recorded(graph);
    CUgraphExec executable = nullptr;
    cu_check(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate()");
    return Graph(executable);
}

void Graph::give_back(CUgraphExec executable) {
    cu_check(cuGraphExecDestroy(executable), "cuGraphExecDestroy()");
}

void Graph::launch(CUstream stream) const {
    cu_check(cuGraphLaunch(value_, stream), "cuGraphLaunch()");
}

}  // namespace symm
