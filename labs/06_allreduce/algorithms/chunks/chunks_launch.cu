#include "common/cuda/driver.hpp"
#include "labs/06_allreduce/algorithms/chunks/chunks.hpp"
#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot_launch.hpp"

namespace symm {
namespace {

constexpr auto kKernel = []<class T, int kMost>(const ChunksParams& call) {
    return Chunks<T, kMost>{call};
};

/// Packs in a chunk. The same on all ranks, even if their blocks have different numbers of threads.
unsigned chunk_packs(int ranks) {
    return (is_emulated() ? 32 : kMostThreads) * (ranks <= 2 ? 8 : 4);
}

void queue(Workspace& workspace, const QueuedCall& call) {
    const SlotMemory& slots = *workspace.slots;
    ChunksParams chunks{two_shot_params(workspace, call),
                        workspace.at<ChunksMemory>(Algorithm::kChunks),
                        slots.trust(),
                        slots.inputs(),
                        slots.sums(),
                        call.collective == Collective::kAllReduce ? 0 : call.bytes(),
                        chunk_packs(call.ranks),
                        !call.in_windows && call.collective != Collective::kReduceScatter};
    for (std::size_t done = 0; done < call.count; done += call.at_once) {
        static_cast<Call&>(chunks) = call.piece(done, call.at_once);
        for (int p = 0; p < call.ranks; ++p) {
            chunks.rendezvous.mine[p] = {call.seen[p].in + done * size_of(call.type),
                                         call.seen[p].out + done * size_of(call.type)};
        }
        launch_for(call.stream, call.shape, call.type, call.ranks, chunks, kKernel);
    }
}

}  // namespace

extern const AlgorithmKernels kChunksKernels{
    .resident_blocks =
        [](DataType type, int ranks, unsigned threads) {
            return resident_blocks_for<ChunksParams>(type, ranks, threads, kKernel);
        },
    .queue = queue,
    .memory = [](int) { return sizeof(ChunksMemory); },
    .prepare = [](Workspace& workspace) { workspace.make_slots(); }};

}  // namespace symm
