#include "labs/05_device_prims/ring/step_latency.hpp"

#include <cuda.h>
#include <fmt/core.h>

#include <cstdint>
#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/rank.hpp"
#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/primitives.hpp"
#include "labs/05_device_prims/ring/simple.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {
namespace {

/// Parameters of both kernels. The connections are those of a ring of two ranks.
struct StepPingPong {
    Connection from_prev;
    Connection to_next;
    int rank;
    std::uint32_t rounds;
    std::uint64_t* wrong;  ///< Wrong payloads so far, in device memory.
    simt::Timeout timeout;
};

__host__ __device__ std::uint64_t payload(int rank, std::uint32_t round) {
    return std::uint64_t{round} << 32 | static_cast<std::uint32_t>(rank + 1);
}

/// A warp on each rank.
template <template <class, class> class ProtocolOf>
struct StepKernel {
    using T = std::int64_t;
    using Proto = ProtocolOf<T, simt::ThreadBlock>;

    StepPingPong play;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const int peer = 1 - play.rank;
        const RingEnds ends{play.from_prev.end(0), play.to_next.end(0), play.rank, peer, peer,
                            play.timeout};
        Proto protocol(block, ends, {ReduceOp::kSum, 2}, {},
                       block.shared<typename Proto::Shared>());
        Primitives<Proto, T> prims(protocol);
        // Thread 0 moves the eight bytes: it writes what it sends, and reads what came.
        T value = 0;
        for (std::uint32_t round = 0; round < play.rounds; ++round) {
            if (play.rank == 0) {
                value = static_cast<T>(payload(0, round));
                prims.send(&value, 1);
            }
            value = 0;
            prims.recv(&value, 1);
            if (block.thread_rank() == 0 && value != static_cast<T>(payload(peer, round))) {
                *play.wrong += 1;
            }
            if (play.rank == 1) {
                value = static_cast<T>(payload(1, round));
                prims.send(&value, 1);
            }
        }
        protocol.finish();
    }
};

/// One thread on each rank. The flags use the memory of the slots, which have to be zeroed and
/// without other use.
struct FlagKernel {
    StepPingPong play;

    __host__ __device__ void operator()(const simt::ThreadBlock&) const {
        const int peer = 1 - play.rank;
        auto* to = reinterpret_cast<std::uint32_t*>(play.to_next.buffer);
        const auto* from = reinterpret_cast<const std::uint32_t*>(play.from_prev.buffer);
        simt::Waiter waiter(play.timeout);
        for (std::uint32_t round = 1; round <= play.rounds; ++round) {
            if (play.rank == 0) {
                signal<simt::Order::kRelaxed>(to, round);
            }
            if (!wait_signal<simt::Order::kRelaxed>(
                    waiter, from, {simt::Wait::kSignal, play.rank, peer, round})) {
                return;
            }
            if (play.rank == 1) {
                signal<simt::Order::kRelaxed>(to, round);
            }
        }
    }
};

template <template <class, class> class ProtocolOf>
void launch_steps(CUstream stream, const StepPingPong& ping_pong) {
    using Kernel = StepKernel<ProtocolOf>;
    launch(stream, 1, simt::kWarpSize, Kernel{ping_pong}, sizeof(typename Kernel::Proto::Shared));
}

void launch_step_ping_pong(CUstream stream, Protocol protocol, const StepPingPong& ping_pong) {
    switch (protocol) {
        case Protocol::kSimple:
            return launch_steps<Simple>(stream, ping_pong);
        case Protocol::kLL:
            return launch_steps<LL>(stream, ping_pong);
        case Protocol::kLL128:
            return launch_steps<LL128>(stream, ping_pong);
    }
}

}  // namespace

double step_latency(Rank& rank, RingCommunicator& ring, const Protocol* protocol,
                    std::uint32_t rounds) {
    const Protocol of = protocol != nullptr ? *protocol : Protocol::kSimple;
    const DeviceMemory wrong(sizeof(std::uint64_t));
    const Stream stream;
    const Event start;
    const Event end;
    double microseconds = 0;
    // So that ranks that share a GPU seldom get the same hardware queue (docs/DESIGN.md).
    cu_check(cuMemsetD8Async(wrong.address(), 0, wrong.size(), stream.get()), "cuMemsetD8Async");
    stream.synchronize("preparing the ping-pong");
    // cuMemFree waits for the kernels that run. On a shared GPU one of them could be the other
    // rank's next ping-pong, which waits for this rank. So none starts before both are here.
    rank.bootstrap().barrier("before the ping-pong");
    rank.bootstrap().together("ping-pong", [&] {
        const StepPingPong ping_pong{
            ring.from_prev(of),        ring.to_next(of), rank.rank(), rounds,
            wrong.as<std::uint64_t>(), ring.timeout()};
        start.record(stream.get());
        if (protocol != nullptr) {
            launch_step_ping_pong(stream.get(), of, ping_pong);
        } else {
            launch(stream.get(), 1, 1, FlagKernel{ping_pong});
        }
        end.record(stream.get());
        ring.synchronize(stream, "ping-pong");
        std::uint64_t errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        if (errors != 0) {
            throw std::runtime_error(
                fmt::format("rank {} saw {} wrong payloads", rank.rank(), errors));
        }
        microseconds = elapsed_us(start, end) / rounds / 2;
    });
    return microseconds;
}

}  // namespace symm
