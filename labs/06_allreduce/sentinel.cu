#include "labs/06_allreduce/sentinel.hpp"

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {
namespace {

template <class Use>
void with_kernel(DataType type, int ranks, const SentinelCall& call, const Use& use) {
    const auto with_element = [&]<class Element>(Element) {
        if (ranks <= 2) {
            use(Sentinel<Element, 2>{call});
        } else if (ranks <= 4) {
            use(Sentinel<Element, 4>{call});
        } else {
            use(Sentinel<Element, kMaxAllReduceRanks>{call});
        }
    };
    type == DataType::kFloat ? with_element(Float{}) : with_element(Bfloat16{});
}

}  // namespace

void launch_sentinel(CUstream stream, LaunchShape shape, DataType type, const SentinelCall& call) {
    with_kernel(type, call.ranks, call,
                [&](const auto& kernel) { launch(stream, shape.blocks, shape.threads, kernel); });
}

unsigned sentinel_resident_blocks(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    with_kernel(type, ranks, {},
                [&]<class Kernel>(const Kernel&) { blocks = resident_blocks<Kernel>(threads); });
    return blocks;
}

}  // namespace symm
