#pragma once
/// \file
/// One launch of a ring collective: its parameters, and the kernel.
///
/// A kernel is compiled per protocol and element type. The collective, the operation and the number
/// of ranks are parameters, so 21 kernels serve all calls.

#include <cuda.h>

#include <cstddef>

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/ring/ring.hpp"

namespace symm {

/// A launch: the parameters of all kernels, for any type.
struct RingLaunch {
    /// AllGather and Broadcast only copy: their type is kUint8, their count in bytes.
    RingRequest request;
    int rank;
    int ranks;
    /// Blocks. All must be resident (running on the GPU) at once, on all ranks.
    std::uint32_t channels;
    unsigned threads;  ///< Of a block: a multiple of 32.
    Connection from_prev;
    Connection to_next;
    simt::Timeout timeout;
};

/// The kernel: block b serves channel b.
template <template <class, class> class ProtocolOf, class T>
struct RingKernel {
    static constexpr unsigned kMaxThreads = 512;
    using Proto = ProtocolOf<T, simt::ThreadBlock>;

    struct Shared {
        typename Proto::Shared protocol;
        std::uint32_t traced;
    };

    RingCall<T> call;
    Connection from_prev;
    Connection to_next;
    int rank;
    int ranks;
    simt::Timeout timeout;
    TraceBuffers trace;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned channel = block.group_index();
        auto* const shared = block.shared<Shared>();
        const RingEnds ends{from_prev.end(channel),
                            to_next.end(channel),
                            rank,
                            (rank + ranks - 1) % ranks,
                            (rank + 1) % ranks,
                            timeout,
                            Tracer(block, trace, channel, &shared->traced)};
        Proto protocol(block, ends, call.reduction, call.direct, &shared->protocol);
        Ring<Proto, T>(protocol, call, channel, block.dim_blocks(), rank, ranks).run();
        protocol.finish();
    }
};

/// The kernels of a protocol, one per element type. Each protocol's are in a .cu file of their own.
struct RingKernels {
    /// Queues a launch. Throws CudaError.
    void (*launch)(CUstream stream, const RingLaunch& launch);
    /// How many blocks of any of the kernels the current device keeps resident.
    unsigned (*resident_blocks)(unsigned threads);
};

extern const RingKernels kSimpleKernels;
extern const RingKernels kLLKernels;
extern const RingKernels kLL128Kernels;

}  // namespace symm
