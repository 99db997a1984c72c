#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

void launch_two_shot(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call) {
    launch_for<TwoShot>(stream, shape, type, call.rendezvous.ranks, call);
}

unsigned two_shot_resident_blocks(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<TwoShot>(type, ranks, threads);
}

}  // namespace symm
