#include "labs/06_allreduce/algorithms/copy/copy.hpp"
#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"

namespace symm {

void launch_end_of_round(CUstream stream, const EndOfRound& end) {
    launch(stream, 1, 32, end);
}

void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType type,
                         const ReducePieceParams& call) {
    launch_for(stream, shape, type, call.ranks, call,
               []<class T, int kMost>(const ReducePieceParams& piece) {
                   return ReducePiece<T, kMost>{piece};
               });
}

void launch_unpack(CUstream stream, LaunchShape shape, const Unpack& unpack) {
    launch(stream, shape.blocks, shape.threads, unpack);
}

namespace {

/// Its blocks do not wait for each other.
unsigned any_number(DataType, int, unsigned) {
    return std::numeric_limits<unsigned>::max();
}

void prepare(Workspace& workspace) {
    workspace.make_slots();
    workspace.copy = workspace.rank.bootstrap().together("streams of copies", [&] {
        return std::make_shared<Copy>(workspace.at<CopyMemory>(Algorithm::kCopy), *workspace.slots);
    });
}

void require_turn(const Workspace& workspace, CUstream stream) {
    if (workspace.copy != nullptr) {
        workspace.copy->require_turn(stream);
    }
}

void queue(Workspace& workspace, const QueuedCall& call) {
    workspace.copy->queue(call.stream, call.shape, {call, workspace.barrier()});
}

}  // namespace

extern const AlgorithmKernels kCopyKernels{.resident_blocks = any_number,
                                           .queue = queue,
                                           .memory = [](int) { return sizeof(CopyMemory); },
                                           .prepare = prepare,
                                           .require_turn = require_turn};

}  // namespace symm
