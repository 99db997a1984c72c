#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot_launch.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const ScratchCall& call) {
    return OneShot<T, kMost>{call};
};

}  // namespace

void launch_one_shot(CUstream stream, LaunchShape shape, const ScratchCall& call) {
    launch_for(stream, shape, call.type, call.ranks, call, kKernel);
}

extern const AlgorithmKernels kOneShotKernels{
    .collective = Collective::kAllReduce,
    .algorithm = Algorithm::kOneShot,
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ScratchCall>(type, ranks, threads, kKernel);
        },
    .queue =
        [](Workspace& workspace, const QueuedCall& call) {
            queue_pieces(
                workspace, Algorithm::kOneShot, kPacketLayout, call,
                [&](const ScratchCall& piece) { launch_one_shot(call.stream, call.shape, piece); });
        },
    .memory = [](int ranks) { return kPacketLayout.bytes(ranks); }};

}  // namespace symm
