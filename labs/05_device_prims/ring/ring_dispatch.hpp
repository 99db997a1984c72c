#pragma once
/// \file
/// From a launch's element type to the kernel compiled for it. Only .cu files may include this.

#include <algorithm>
#include <limits>

#include "common/cuda/launch.hpp"
#include "common/cuda/occupancy.hpp"
#include "labs/05_device_prims/ring/ring_kernel.hpp"

namespace symm {

template <template <class, class> class ProtocolOf>
void launch_ring(CUstream stream, const RingLaunch& ring) {
    const RingRequest& request = ring.request;
    with_kernel_type(request.type, [&](auto zero) {
        using T = decltype(zero);
        using Kernel = RingKernel<ProtocolOf, T>;
        const bool every_rank = request.collective == Collective::kAllReduce;
        const std::size_t chunk = ring_chunk(
            request.count, ring.channels, every_rank ? static_cast<std::size_t>(ring.ranks) : 1,
            Kernel::Proto::step_elements(ring.to_next.slot_bytes), 128 / sizeof(T));
        auto* const output = reinterpret_cast<T*>(request.output);
        const RingCall<T> call{request.collective,
                               {request.op, ring.ranks, is_signed_integer(request.type)},
                               reinterpret_cast<const T*>(request.input),
                               output,
                               request.count,
                               chunk,
                               request.root,
                               {output, reinterpret_cast<T*>(request.next_output)}};
        launch(stream, ring.channels, ring.threads,
               Kernel{call, ring.from_prev, ring.to_next, ring.rank, ring.ranks, ring.timeout,
                      request.trace},
               sizeof(typename Kernel::Shared));
    });
}

template <template <class, class> class ProtocolOf>
unsigned resident_ring_blocks(unsigned threads) {
    unsigned fewest = std::numeric_limits<unsigned>::max();
    for (const DataType type : kDataTypes) {
        with_kernel_type(type, [&](auto zero) {
            using Kernel = RingKernel<ProtocolOf, decltype(zero)>;
            fewest =
                std::min(fewest, resident_blocks<Kernel>(threads, sizeof(typename Kernel::Shared)));
        });
    }
    return fewest;
}

template <template <class, class> class ProtocolOf>
constexpr RingKernels kernels_of() {
    return {launch_ring<ProtocolOf>, resident_ring_blocks<ProtocolOf>};
}

}  // namespace symm
