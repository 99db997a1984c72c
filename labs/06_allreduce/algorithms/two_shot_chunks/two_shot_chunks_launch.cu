#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp"

namespace symm {

void launch_two_shot_chunks(CUstream stream, LaunchShape shape, DataType type,
                            const ChunksCall& call) {
    launch_for<TwoShotChunks>(stream, shape, type, call.rendezvous.ranks, call);
}

unsigned two_shot_chunks_resident_blocks(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<TwoShotChunks>(type, ranks, threads);
}

}  // namespace symm
