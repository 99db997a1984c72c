#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"

#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"

namespace symm {

void launch_end_of_round(CUstream stream, const EndOfRound& end) {
    launch(stream, 1, 32, end);
}

void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType type,
                         const ReducePieceCall& call) {
    launch_for<ReducePiece>(stream, shape, type, call.ranks, call);
}

void launch_unpack(CUstream stream, LaunchShape shape, const Unpack& unpack) {
    launch(stream, shape.blocks, shape.threads, unpack);
}

}  // namespace symm
