#pragma once
/// \file
/// The kernel of a ring collective.
///
/// A kernel is compiled per protocol and element type. The collective, the operation and the number
/// of ranks are parameters, so 21 kernels serve all calls.

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/ring/ring.hpp"
#include "labs/05_device_prims/ring/ring_request.hpp"

namespace symm {

/// The kernel: block b serves channel b.
template <class Protocol>
struct RingKernel {
    static constexpr unsigned kMaxThreads = 512;
    using T = typename Protocol::Element;

    struct Shared {
        typename Protocol::Shared protocol;
        std::uint32_t traced;
    };

    RingParams<T> call;
    Connection from_prev;
    Connection to_next;
    int rank;
    int ranks;
    simt::Timeout timeout;
    TraceBuffers trace;

    /// The kernel of a launch.
    static RingKernel of(const RingLaunch& ring) {
        const RingRequest& request = ring.request;
        const std::size_t chunks =
            request.collective == Collective::kAllReduce ? static_cast<std::size_t>(ring.ranks) : 1;
        auto* const output = reinterpret_cast<T*>(request.output);
        return {{request.collective,
                 {request.op, ring.ranks, is_signed_integer(request.type)},
                 reinterpret_cast<const T*>(request.input),
                 output,
                 request.count,
                 ring_chunk(request.count, ring.channels, chunks,
                            Protocol::step_elements(ring.to_next.slot_bytes), 128 / sizeof(T)),
                 request.root,
                 {output, reinterpret_cast<T*>(request.next_output)}},
                ring.from_prev,
                ring.to_next,
                ring.rank,
                ring.ranks,
                ring.timeout,
                request.trace};
    }

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
        Protocol protocol(block, ends, call.reduction, call.direct, &shared->protocol);
        Ring<Protocol, T>(protocol, call, channel, block.dim_blocks(), rank, ranks).run();
        protocol.finish();
    }
};

}  // namespace symm
