// Lab 06's kernels of two shots by the copy engine, for two ranks and float only: mutants are
// compiled often. The library's test uses the library's kernels.

#include "common/cuda/launch.hpp"
#include "labs/06_allreduce/algorithms/copy/copy.hpp"

namespace symm {

void launch_end_of_round(CUstream stream, const EndOfRound& end) {
    launch(stream, 1, 4, end);
}

void launch_reduce_piece(CUstream stream, LaunchShape shape, DataType /*float*/,
                         const ReducePieceParams& call) {
    launch(stream, shape.blocks, shape.threads, ReducePiece<float, 2>{call});
}

void launch_unpack(CUstream stream, LaunchShape shape, const Unpack& unpack) {
    launch(stream, shape.blocks, shape.threads, unpack);
}

}  // namespace symm
