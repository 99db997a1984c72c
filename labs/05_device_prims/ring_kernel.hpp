#pragma once
/// \file
/// One launch of a ring collective: the kernel, and how it is chosen.
///
/// A kernel is compiled per protocol and element type. The collective, the operation and the number
/// of ranks are parameters, so a few dozen kernels serve all calls.

#include <cuda.h>

#include <array>
#include <cstddef>

#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/ring.hpp"

namespace symm {

enum class Protocol : std::uint32_t { kSimple, kLL, kLL128 };
inline constexpr std::array kProtocols{Protocol::kSimple, Protocol::kLL, Protocol::kLL128};

/// A launch: what all kernels need, whatever their type.
struct RingLaunch {
    Collective collective;
    Protocol protocol;
    DataType type;
    ReduceOp op;
    CUdeviceptr input;
    CUdeviceptr output;
    CUdeviceptr next_output;  ///< The next rank's output, for direct sends; 0 where there are none.
    std::size_t count;
    int root;
    int rank;
    int ranks;
    std::uint32_t channels;  ///< Blocks; all must be resident at once, on all ranks.
    Connection from_prev;
    Connection to_next;
    simt::Timeout timeout;
};

/// The kernel: block b serves channel b.
template <template <class, class> class ProtocolOf, class T>
struct RingKernel {
    using Proto = ProtocolOf<T, simt::ThreadBlock>;

    RingCall<T> call;
    Connection from_prev;
    Connection to_next;
    int rank;
    int ranks;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const unsigned channel = block.group_index();
        const RingEnds ends{from_prev.end(channel),     to_next.end(channel), rank,
                            (rank + ranks - 1) % ranks, (rank + 1) % ranks,   timeout};
        Proto protocol(block, ends, call.reduction, call.direct,
                       block.shared<typename Proto::Shared>());
        Ring<Proto, T>(protocol, call, channel, block.dim_blocks(), rank, ranks).run();
        protocol.finish();
    }
};

/// Queue the launch; `threads` is a multiple of 32. Throw CudaError. (Each in a .cu file of its
/// own.)
void launch_simple(CUstream stream, unsigned threads, const RingLaunch& launch);
void launch_ll(CUstream stream, unsigned threads, const RingLaunch& launch);
void launch_ll128(CUstream stream, unsigned threads, const RingLaunch& launch);

/// How many blocks of any of a protocol's kernels the current device keeps resident.
unsigned resident_simple_blocks(unsigned threads);
unsigned resident_ll_blocks(unsigned threads);
unsigned resident_ll128_blocks(unsigned threads);

}  // namespace symm
