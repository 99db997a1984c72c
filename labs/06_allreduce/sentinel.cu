#include "labs/06_allreduce/dispatch.hpp"
#include "labs/06_allreduce/launches.hpp"

namespace symm {
namespace {

/// Calls `use(kernel)`, unless the type is an integer's.
template <class Use>
void with_kernel(DataType type, int ranks, const SentinelCall& call, const Use& use) {
    dispatch(type, ranks, [&](auto zero, auto most) {
        if constexpr (!std::is_integral_v<decltype(zero)>) {
            use(Sentinel<decltype(zero), most()>{call});
        }
    });
}

}  // namespace

void launch_sentinel(CUstream stream, LaunchShape shape, DataType type, const SentinelCall& call) {
    with_kernel(type, call.ranks, call,
                [&](const auto& kernel) { launch(stream, shape.blocks, shape.threads, kernel); });
}

unsigned sentinel_resident_blocks(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    with_kernel(type, ranks, {.reduction = {ReduceOp::kSum, ranks}},
                [&]<class Kernel>(const Kernel&) { blocks = resident_blocks<Kernel>(threads); });
    return blocks;
}

}  // namespace symm
