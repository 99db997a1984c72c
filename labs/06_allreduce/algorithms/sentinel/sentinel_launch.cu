#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"

namespace symm {

void launch_sentinel(CUstream stream, LaunchShape shape, DataType type, const ScratchCall& call) {
    launch_for<Sentinel, Types::kFloating>(stream, shape, type, call.ranks, call);
}

unsigned sentinel_resident_blocks(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<Sentinel, Types::kFloating>(type, ranks, threads);
}

}  // namespace symm
