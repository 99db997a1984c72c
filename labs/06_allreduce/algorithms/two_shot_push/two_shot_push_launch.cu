#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp"

namespace symm {

void launch_two_shot_push(CUstream stream, LaunchShape shape, DataType type,
                          const ScratchCall& call) {
    launch_for<TwoShotPush, Types::kFloating>(stream, shape, type, call.ranks, call);
}

unsigned two_shot_push_resident_blocks(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<TwoShotPush, Types::kFloating>(type, ranks, threads);
}

}  // namespace symm
