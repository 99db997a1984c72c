#pragma once
/// \file
/// The kernels of a ring protocol. Only .cu files may include this.

#include <algorithm>
#include <limits>

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/05_device_prims/ring/ring_kernel.hpp"

namespace symm {

/// A protocol's kernels, for all element types.
template <template <class, class> class ProtocolOf>
constexpr RingKernels kernels_of() {
    return {[](CUstream stream, const RingLaunch& ring) {
                with_kernel_type(ring.request.type, [&](auto zero) {
                    using Kernel = RingKernel<ProtocolOf<decltype(zero), simt::ThreadBlock>>;
                    launch(stream, ring.channels, ring.threads, Kernel::of(ring),
                           sizeof(typename Kernel::Shared));
                });
            },
            [](unsigned threads) {
                unsigned fewest = std::numeric_limits<unsigned>::max();
                for (const DataType type : kDataTypes) {
                    with_kernel_type(type, [&](auto zero) {
                        using Kernel = RingKernel<ProtocolOf<decltype(zero), simt::ThreadBlock>>;
                        fewest = std::min(fewest, resident_blocks<Kernel>(
                                                      threads, sizeof(typename Kernel::Shared)));
                    });
                }
                return fewest;
            }};
}

}  // namespace symm
