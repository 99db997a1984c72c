#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"

namespace symm {

void launch_one_shot(CUstream stream, LaunchShape shape, DataType type, const ScratchCall& call) {
    launch_for<OneShot>(stream, shape, type, call.ranks, call);
}

unsigned one_shot_resident_blocks(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<OneShot>(type, ranks, threads);
}

}  // namespace symm
