#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot_launch.hpp"
#include "labs/06_allreduce/halves/packets.hpp"

namespace symm {
namespace {

constexpr auto kScatter = []<class T, int kMost>(const ScratchCall& call) {
    return ReduceScatterPackets<T, kMost>{{{call}}};
};
constexpr auto kGather = []<class T, int kMost>(const ScratchCall& call) {
    return AllGatherPackets<T, kMost>{{{call}}};
};

}  // namespace

extern const AlgorithmKernels kReduceScatterPacketsKernels{
    .collective = Collective::kReduceScatter,
    .algorithm = Algorithm::kOneShot,
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ScratchCall>(type, ranks, threads, kScatter);
        },
    .queue =
        [](Workspace& workspace, const QueuedCall& call) {
            queue_pieces(
                workspace, Algorithm::kOneShot, kPacketLayout, call, [&](const ScratchCall& piece) {
                    launch_for(call.stream, call.shape, call.type, call.ranks, piece, kScatter);
                });
        }};

extern const AlgorithmKernels kAllGatherPacketsKernels{
    .collective = Collective::kAllGather,
    .algorithm = Algorithm::kOneShot,
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ScratchCall, Types::kIntegers>(type, ranks, threads,
                                                                      kGather);
        },
    .queue =
        [](Workspace& workspace, const QueuedCall& call) {
            queue_pieces(workspace, Algorithm::kOneShot, kPacketLayout, call,
                         [&](const ScratchCall& piece) {
                             launch_for<Types::kIntegers>(call.stream, call.shape, call.type,
                                                          call.ranks, piece, kGather);
                         });
        }};

}  // namespace symm
