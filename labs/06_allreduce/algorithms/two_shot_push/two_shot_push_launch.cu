#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/scratch_launch.hpp"
#include "labs/06_allreduce/algorithms/two_shot_push/two_shot_push.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const ScratchCall& call) {
    return TwoShotPush<T, kMost>{call};
};

/// A bank has two regions, for scatter and gather, of whole cache lines for each sender.
ScratchLayout layout(int ranks) {
    const auto packs = static_cast<unsigned>(push_limit(ranks) / sizeof(simt::Pack16));
    return {(packs_per_part(packs, ranks) + 7) / 8 * 8, 2};
}

}  // namespace

extern const AlgorithmKernels kPushKernels{
    .collective = Collective::kAllReduce,
    .algorithm = Algorithm::kPush,
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ScratchCall, Types::kFloating>(type, ranks, threads,
                                                                      kKernel);
        },
    .queue =
        [](Workspace& workspace, const QueuedCall& call) {
            queue_pieces(workspace, Algorithm::kPush, layout(call.ranks), call,
                         [&](const ScratchCall& piece) {
                             launch_for<Types::kFloating>(call.stream, call.shape, call.type,
                                                          call.ranks, piece, kKernel);
                         });
        },
    .memory = [](int ranks) { return layout(ranks).bytes(ranks); },
    .initialize = initialize_with_sentinels<layout>};

}  // namespace symm
