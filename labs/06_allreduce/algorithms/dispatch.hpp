#pragma once
/// \file
/// From a call's element type and number of ranks to the kernel compiled for them. Only .cu files
/// may include this.

#include <type_traits>

#include "common/cuda/gpu.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/06_allreduce/algorithms/launches.hpp"

namespace symm {

/// The types that a kernel is compiled for: the sentinel's kernels support only floating types; the
/// kernel on NCCL's device API, built for comparison, has the two that users measure; and an
/// AllGather moves bytes.
enum class Types { kAll, kFloating, kFloatAndBfloat16, kBytes };

template <class T>
constexpr bool compiled_for(Types types) {
    return types == Types::kAll || (types == Types::kFloating && !std::is_integral_v<T>) ||
           (types == Types::kFloatAndBfloat16 &&
            (std::is_same_v<T, float> || std::is_same_v<T, __nv_bfloat16>)) ||
           (types == Types::kBytes && std::is_same_v<T, std::uint8_t>);
}

/// A kernel that is compiled for emulated GPUs only.
template <class Kernel>
struct Emulated : Kernel {
    static constexpr bool kOnGpus = false;
};

/// Calls `use.operator()<Chosen>()` with the kernel for the type and the ranks: they are compiled
/// for at most 2, 4 and 8 ranks, and for emulated GPUs 16. Does nothing for a type that the kernel
/// is not compiled for.
template <template <class, int> class Kernel, Types kTypes, class Use>
void dispatch(DataType type, int ranks, const Use& use) {
    with_kernel_type(type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (compiled_for<T>(kTypes)) {
            if (ranks <= 2) {
                use.template operator()<Kernel<T, 2>>();
            } else if (ranks <= 4) {
                use.template operator()<Kernel<T, 4>>();
            } else if (ranks <= kMaxRanksOnGpus) {
                use.template operator()<Kernel<T, kMaxRanksOnGpus>>();
            } else {
                use.template operator()<Emulated<Kernel<T, kMaxAllReduceRanks>>>();
            }
        }
    });
}

/// The dynamic shared memory of a block: as the kernel specifies, or none.
template <class Kernel>
constexpr unsigned shared_bytes_of() {
    if constexpr (requires { Kernel::kSharedBytes; }) {
        return Kernel::kSharedBytes;
    } else {
        return 0;
    }
}

/// Queues the kernel `Kernel<T, kMost>`.
template <template <class, int> class Kernel, Types kTypes = Types::kAll, class Call>
void launch_for(CUstream stream, LaunchShape shape, DataType type, int ranks, const Call& call) {
    dispatch<Kernel, kTypes>(type, ranks, [&]<class Chosen>() {
        launch(stream, shape.blocks, shape.threads, Chosen{{call}}, shared_bytes_of<Chosen>());
    });
}

/// How many blocks of the kernel a device keeps resident.
template <template <class, int> class Kernel, Types kTypes = Types::kAll>
unsigned resident_blocks_for(DataType type, int ranks, unsigned threads) {
    unsigned blocks = 0;
    dispatch<Kernel, kTypes>(type, ranks, [&]<class Chosen>() {
        blocks = resident_blocks<Chosen>(threads, shared_bytes_of<Chosen>());
    });
    return blocks;
}

}  // namespace symm
