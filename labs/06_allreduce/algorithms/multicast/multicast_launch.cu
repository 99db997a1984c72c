#include "labs/03_ipc/multicast_range.hpp"
#include "labs/06_allreduce/algorithms/dispatch.hpp"
#include "labs/06_allreduce/algorithms/kernels.hpp"
#include "labs/06_allreduce/algorithms/multicast/multicast.hpp"

namespace symm {
namespace {

/// A rank's memory behind the multicast address.
struct MulticastMemory {
    ArrivalCounts counts;
    alignas(128) simt::Pack16 data[kMulticastBytes / sizeof(simt::Pack16)];
};

/// Up to so many bytes each rank loads the whole sum: one trip less.
constexpr std::size_t kOneShotBytes = std::size_t{64} << 10;

constexpr auto kKernel = []<class T, int>(const MulticastParams& call) {
    return Multicast<T>{call};
};

unsigned resident(DataType type, int ranks, unsigned threads) {
    return std::min(kMaxBarrierBlocks, resident_blocks_for<MulticastParams, Types::kInSwitch>(
                                           type, ranks, threads, kKernel));
}

void prepare(Workspace& workspace) {
    workspace.multicast = std::make_unique<MulticastRange>(workspace.rank, sizeof(MulticastMemory));
}

void queue(Workspace& workspace, const QueuedCall& call) {
    auto* const own = workspace.multicast->own<MulticastMemory>();
    auto* const all = workspace.multicast->all<MulticastMemory>();
    const Call whole = call;
    for (std::size_t done = 0; done < whole.count; done += call.at_once) {
        MulticastParams kernel{
            call, {&own->counts, &all->counts, call.rank, call.ranks}, own->data, all->data, false};
        static_cast<Call&>(kernel) = whole.piece(done, call.at_once);
        kernel.two_shots = kernel.bytes() > kOneShotBytes;
        launch_for<Types::kInSwitch>(call.stream, call.shape, call.type, call.ranks, kernel,
                                     kKernel);
    }
}

}  // namespace

extern const AlgorithmKernels kMulticastKernels{
    .resident_blocks = resident, .queue = queue, .prepare = prepare};

}  // namespace symm
