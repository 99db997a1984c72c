#pragma once
/// \file
/// A call of a ring: the collective, the protocol, and the buffers; and its launch on one rank.

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "labs/04_shm_transport/connection/fifo_memory.hpp"
#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/05_device_prims/ring/trace.hpp"

namespace symm {

enum class Protocol : std::uint32_t { kSimple, kLL, kLL128 };
inline constexpr std::array kProtocols{Protocol::kSimple, Protocol::kLL, Protocol::kLL128};

/// Where the connections lie: in the GPUs' memory, or in host memory (lab 04).
enum class RingMemory { kPeer, kHost };

constexpr auto names_of(Protocol) {
    return names("Protocol", "simple", "ll", "ll128");
}
constexpr auto names_of(RingMemory) {
    return names("RingMemory", "peer", "host");
}

/// A call. Everything but the addresses is the same on all ranks. The buffers that a rank reads and
/// writes do not overlap, or the call is in place: they are the same, or one is the rank's own part
/// of the other.
///
/// `count` is the number of elements of an input or an output: of each rank's part if the ranks
/// have parts.
///
/// | collective    | input         | output        |
/// |---------------|---------------|---------------|
/// | AllReduce     | count         | count         |
/// | ReduceScatter | ranks * count | count         |
/// | AllGather     | count         | ranks * count |
/// | Broadcast     | count, read at the root | count |
/// | Reduce        | count         | count, written at the root |
struct RingRequest {
    Collective collective = Collective::kAllReduce;
    Protocol protocol = Protocol::kSimple;
    DataType type = DataType::kFloat;
    ReduceOp op = ReduceOp::kSum;
    CUdeviceptr input = 0;
    CUdeviceptr output = 0;
    std::size_t count = 0;
    int root = 0;
    /// The address of the next rank's output, in this process, if this rank's GPU can store to it;
    /// else 0. On all ranks or on none. An AllReduce with Simple then stores there. If the next
    /// rank's kernel gives up, this one may still store there until its own wait ends.
    CUdeviceptr next_output = 0;
    TraceBuffers trace;  ///< Where blocks record their steps, if anywhere.
};

/// A launch: the parameters of all kernels, for any type.
struct RingLaunch {
    /// AllGather and Broadcast only copy: their type is kUint8, their count in bytes.
    RingRequest request;
    int rank;
    int ranks;
    /// Blocks. All must be resident (running on the GPU) at once, on all ranks.
    std::uint32_t channels;
    unsigned threads;  ///< Threads per block, a multiple of 32.
    Connection from_prev;
    Connection to_next;
    simt::Timeout timeout;
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
