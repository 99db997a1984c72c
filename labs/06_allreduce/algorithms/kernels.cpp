#include "labs/06_allreduce/algorithms/kernels.hpp"

#include <algorithm>
#include <array>

namespace symm {

extern const AlgorithmKernels kOneShotKernels;
extern const AlgorithmKernels kSentinelKernels;
extern const AlgorithmKernels kPushKernels;
extern const AlgorithmKernels kTwoShotKernels;
extern const AlgorithmKernels kChunksKernels;
extern const AlgorithmKernels kCopyKernels;
extern const AlgorithmKernels kReduceScatterPacketsKernels;
extern const AlgorithmKernels kReduceScatterKernels;
extern const AlgorithmKernels kReduceScatterCopyKernels;
extern const AlgorithmKernels kAllGatherPacketsKernels;
extern const AlgorithmKernels kAllGatherKernels;
extern const AlgorithmKernels kAllGatherCopyKernels;

std::span<const AlgorithmKernels* const> all_kernels() {
    static constexpr std::array kAll{&kOneShotKernels,
                                     &kSentinelKernels,
                                     &kPushKernels,
                                     &kTwoShotKernels,
                                     &kChunksKernels,
                                     &kCopyKernels,
                                     &kReduceScatterPacketsKernels,
                                     &kReduceScatterKernels,
                                     &kReduceScatterCopyKernels,
                                     &kAllGatherPacketsKernels,
                                     &kAllGatherKernels,
                                     &kAllGatherCopyKernels};
    return kAll;
}

const AlgorithmKernels& kernels_of(Collective collective, Algorithm algorithm) {
    const auto all = all_kernels();
    return **std::find_if(all.begin(), all.end(), [&](const AlgorithmKernels* one) {
        return one->collective == collective && one->algorithm == algorithm;
    });
}

void make_slots(Workspace& workspace) {
    if (workspace.slots == nullptr) {
        workspace.slots = std::make_unique<SlotMemory>(workspace.rank);
    }
}

}  // namespace symm
