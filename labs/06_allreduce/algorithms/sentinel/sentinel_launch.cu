#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/scratch_launch.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const ScratchCall& call) {
    return Sentinel<T, kMost>{call};
};

ScratchLayout layout(int ranks) {
    return {static_cast<unsigned>(sentinel_limit(ranks) / sizeof(simt::Pack16))};
}

}  // namespace

extern const AlgorithmKernels kSentinelKernels{
    .collective = Collective::kAllReduce,
    .algorithm = Algorithm::kSentinel,
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ScratchCall, Types::kFloating>(type, ranks, threads,
                                                                      kKernel);
        },
    .queue =
        [](Workspace& workspace, const QueuedCall& call) {
            queue_pieces(workspace, Algorithm::kSentinel, layout(call.ranks), call,
                         [&](const ScratchCall& piece) {
                             launch_for<Types::kFloating>(call.stream, call.shape, call.type,
                                                          call.ranks, piece, kKernel);
                         });
        },
    .memory = [](int ranks) { return layout(ranks).bytes(ranks); },
    .initialize = initialize_with_sentinels<layout>};

}  // namespace symm
