#pragma once
/// \file
/// From a call's element type and number of ranks to the kernel compiled for them. Only .cu files
/// may include this.

#include <type_traits>

#include "common/cuda/gpu.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/05_device_prims/reduction.hpp"
#include "labs/06_allreduce/one_shot.hpp"

namespace symm {

/// Calls `use(T{}, std::integral_constant<int, kMost>{})`: kernels are compiled for at most 2, 4
/// and 8 ranks.
template <class Use>
void dispatch(DataType type, int ranks, const Use& use) {
    with_kernel_type(type, [&](auto zero) {
        if (ranks <= 2) {
            use(zero, std::integral_constant<int, 2>{});
        } else if (ranks <= 4) {
            use(zero, std::integral_constant<int, 4>{});
        } else {
            use(zero, std::integral_constant<int, kMaxAllReduceRanks>{});
        }
    });
}

/// Queues the kernel `Kernel<T, kMost>`.
template <template <class, int> class Kernel, class Call>
void launch_for(CUstream stream, LaunchShape shape, DataType type, int ranks, const Call& call) {
    dispatch(type, ranks, [&](auto zero, auto most) {
        launch(stream, shape.blocks, shape.threads, Kernel<decltype(zero), most()>{call});
    });
}

/// How many blocks of the kernel a device keeps resident.
template <template <class, int> class Kernel>
unsigned resident_blocks_for(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    dispatch(type, ranks, [&](auto zero, auto most) {
        blocks = resident_blocks<Kernel<decltype(zero), most()>>(threads);
    });
    return blocks;
}

}  // namespace symm
