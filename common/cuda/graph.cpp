#include "common/cuda/graph.hpp"

#include <memory>

#include "common/cuda/check.hpp"

namespace symm {

Graph Graph::capture(CUstream stream, const std::function<void()>& queue) {
    cu_check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             "cuStreamBeginCapture()");
    CUgraph recorded = nullptr;
    try {
        queue();
    } catch (...) {
        cuStreamEndCapture(stream, &recorded);  // the first error is the one to tell
        if (recorded != nullptr) {
            cu_check_nothrow(cuGraphDestroy(recorded), "cuGraphDestroy()");
        }
        throw;
    }
    cu_check(cuStreamEndCapture(stream, &recorded), "cuStreamEndCapture()");
    const std::unique_ptr<CUgraph_st, void (*)(CUgraph)> owner(recorded, [](CUgraph graph) {
        cu_check_nothrow(cuGraphDestroy(graph), "cuGraphDestroy()");
    });
    CUgraphExec executable = nullptr;
    cu_check(cuGraphInstantiate(&executable, recorded, 0), "cuGraphInstantiate()");
    return Graph(executable);
}

Graph::~Graph() {
    if (executable_ != nullptr) {
        cu_check_nothrow(cuGraphExecDestroy(executable_), "cuGraphExecDestroy()");
    }
}

void Graph::launch(CUstream stream) const {
    cu_check(cuGraphLaunch(executable_, stream), "cuGraphLaunch()");
}

}  // namespace symm
