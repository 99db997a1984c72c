#pragma once
/// \file
/// From a call's element type and number of ranks to the kernel compiled for them. Only .cu files
/// may include this.

#include <limits>
#include <type_traits>
#include <utility>

#include "common/cuda/gpu.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "common/simt/multimem.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

namespace symm {

/// The types that a kernel is compiled for: the sentinel's kernels support only floating types; the
/// kernel on NCCL's device API, built for comparison, has the two that users measure; an AllGather
/// moves integers; and a switch adds up integers of 32 bits and more.
enum class Types { kAll, kFloating, kFloatAndBfloat16, kIntegers, kInSwitch };

template <class T>
constexpr bool compiled_for(Types types) {
    return types == Types::kAll || (types == Types::kFloating && !std::is_integral_v<T>) ||
           (types == Types::kFloatAndBfloat16 &&
            (std::is_same_v<T, float> || std::is_same_v<T, __nv_bfloat16>)) ||
           (types == Types::kIntegers && std::is_integral_v<T>) ||
           (types == Types::kInSwitch && simt::can_switch<T>(simt::SwitchOp::kAdd));
}

/// A kernel that is compiled for emulated GPUs only.
template <class Kernel>
struct Emulated : Kernel {
    static constexpr bool kOnGpus = false;
};
template <class Kernel>
Emulated(Kernel) -> Emulated<Kernel>;

/// Calls `use.operator()<T, kMost>()` for the type and the ranks: kernels are compiled for at most
/// 2, 4 and 8 ranks, and for emulated GPUs 16. Does nothing for a type that they are not compiled
/// for.
template <Types kTypes, class Use>
void with_type_and_ranks(DataType type, int ranks, const Use& use) {
    with_kernel_type(type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (compiled_for<T>(kTypes)) {
            if (ranks <= 2) {
                use.template operator()<T, 2>();
            } else if (ranks <= 4) {
                use.template operator()<T, 4>();
            } else if (ranks <= kMaxRanksOnGpus) {
                use.template operator()<T, kMaxRanksOnGpus>();
            } else {
                use.template operator()<T, kMaxAllReduceRanks>();
            }
        }
    });
}

/// The kernel that `make` returns for a call, T and kMost.
template <class T, int kMost, class Make, class Call>
auto kernel_by(const Make& make, const Call& call) {
    if constexpr (kMost <= kMaxRanksOnGpus) {
        return make.template operator()<T, kMost>(call);
    } else {
        return Emulated{make.template operator()<T, kMost>(call)};
    }
}

/// Queues the kernel for the type and the ranks. `make` lists what there is:
/// `[]<class T, int kMost>(const Call& call) { return OneShot<T, kMost>{call}; }`.
template <Types kTypes = Types::kAll, class Call, class Make>
void launch_for(CUstream stream, LaunchShape shape, DataType type, int ranks, const Call& call,
                const Make& make, LaunchOrder order = LaunchOrder::kAfter) {
    with_type_and_ranks<kTypes>(type, ranks, [&]<class T, int kMost>() {
        const auto kernel = kernel_by<T, kMost>(make, call);
        launch(stream, shape.blocks, shape.threads, kernel,
               simt::shared_bytes_of<std::remove_const_t<decltype(kernel)>>(), order);
    });
}

/// How many blocks of that kernel a device keeps resident. Any number, if there is none.
template <class Call, Types kTypes = Types::kAll, class Make>
unsigned resident_blocks_for(DataType type, int ranks, unsigned threads, const Make&) {
    unsigned blocks = std::numeric_limits<unsigned>::max();
    with_type_and_ranks<kTypes>(type, ranks, [&]<class T, int kMost>() {
        using Kernel = decltype(kernel_by<T, kMost>(std::declval<Make>(), std::declval<Call>()));
        blocks = resident_blocks<Kernel>(threads, simt::shared_bytes_of<Kernel>());
    });
    return blocks;
}

}  // namespace symm
