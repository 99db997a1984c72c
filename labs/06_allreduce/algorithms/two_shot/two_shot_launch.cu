#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot_launch.hpp"

namespace symm {

TwoShotParams two_shot_params(const Workspace& workspace, const QueuedCall& call) {
    const auto inboxes = workspace.at<RendezvousMemory>(Algorithm::kTwoShot);
    const CollectiveRow& row = row_of(call.collective);
    TwoShotParams two_shots{call,
                            {inboxes, call.rank, call.ranks, {}},
                            workspace.barrier(),
                            TwoShotParams::only(row.from, call.rank, call.root),
                            TwoShotParams::only(row.to, call.rank, call.root),
                            !row.has_parts()};
    std::copy_n(call.seen, call.ranks, two_shots.rendezvous.mine);
    return two_shots;
}

namespace {

constexpr auto kKernel = []<class T, int kMost>(const TwoShotParams& call) {
    return TwoShot<T, kMost>{call};
};

unsigned resident(DataType type, int ranks, unsigned threads) {
    return resident_blocks_for<TwoShotParams>(type, ranks, threads, kKernel);
}

void queue(Workspace& workspace, const QueuedCall& call) {
    launch_for(call.stream, call.shape, call.type, call.ranks, two_shot_params(workspace, call),
               kKernel);
}

}  // namespace

extern const AlgorithmKernels kTwoShotKernels{
    .resident_blocks = resident, .queue = queue, .memory = [](int) {
        return sizeof(RendezvousMemory);
    }};

}  // namespace symm
