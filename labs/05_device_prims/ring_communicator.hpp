#pragma once
/// \file
/// Ring collectives between ranks: the connections, and a launch per call.

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "labs/04_shm_transport/transport.hpp"
#include "labs/05_device_prims/peer_connections.hpp"
#include "labs/05_device_prims/ring_kernel.hpp"

namespace symm {

/// Where the connections lie: in the GPUs' memory, or in host memory (lab 04).
enum class RingMemory { kPeer, kHost };

/// `simple`, `ll` or `ll128`; `peer` or `host`; `allreduce`, `reducescatter`, ...
std::string_view name_of(Protocol protocol);
std::string_view name_of(RingMemory memory);
std::string_view name_of(Collective collective);
/// By their names. Throw UsageError for another, naming those there are.
Protocol protocol_named(std::string_view name);
RingMemory ring_memory_named(std::string_view name);
Collective collective_named(std::string_view name);

/// How a communicator is built: the same on all ranks.
struct RingOptions {
    RingMemory memory = RingMemory::kPeer;
    /// Blocks of a launch at most; 0: as suits the memory. Fewer where they are not all resident.
    std::uint32_t channels = 0;
    /// How long a kernel waits for a neighbour at one step.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
};

/// A call. All but the addresses is the same on all ranks; ring.hpp says which buffer has how many
/// elements. In place: the two buffers are the same, or the part of one that is the rank's own.
struct RingRequest {
    Collective collective = Collective::kAllReduce;
    Protocol protocol = Protocol::kSimple;
    DataType type = DataType::kFloat;
    ReduceOp op = ReduceOp::kSum;
    CUdeviceptr input = 0;
    CUdeviceptr output = 0;
    std::size_t count = 0;
    int root = 0;
    /// The address of the next rank's output, in this process, where this rank's GPU can store to
    /// it; else 0. On all ranks or on none. An AllReduce with Simple then stores there.
    CUdeviceptr next_output = 0;
};

/// One rank's end of the ring. Construction and calls are collective: all ranks make them in the
/// same order. Used by its rank's thread only, with the rank's context current.
class RingCommunicator {
public:
    /// `rank` must outlive it. If it fails on one rank, it throws on all ranks and leaves nothing
    /// behind; the bootstrap can still be used.
    explicit RingCommunicator(Rank& rank, const RingOptions& options = {});
    RingCommunicator(const RingCommunicator&) = delete;
    RingCommunicator& operator=(const RingCommunicator&) = delete;
    /// If an exception destroys it, the other ranks are told, and its kernels end.
    ~RingCommunicator();

    /// Queues a call. Throws CudaError, and std::invalid_argument for a call that is not possible:
    /// a root that does not exist, an address that is no multiple of the element's size, LL128
    /// where lines do not arrive whole.
    void queue(const RingRequest& call, CUstream stream);

    /// Waits for the stream. Throws where a kernel gave up waiting, and says for which rank, block
    /// and step. After that the communicator can only be destroyed.
    void synchronize(const Stream& stream, std::string_view what);

    /// Why LL128 is refused; empty where it is not.
    const std::string& why_no_ll128() const { return why_no_ll128_; }
    /// Blocks of a call.
    std::uint32_t channels_of(const RingRequest& call) const;
    /// The connections of a protocol, for kernels of the caller.
    Connection to_next(Protocol protocol) const;
    Connection from_prev(Protocol protocol) const;
    simt::Timeout timeout() const { return timeout_.timeout(); }

private:
    void connect(std::uint32_t channels);

    Rank& rank_;
    RingOptions options_;
    KernelTimeout timeout_;
    std::uint32_t channels_ = 0;
    std::string why_no_ll128_;
    std::map<Protocol, PeerConnections> peers_;
    std::map<Protocol, ShmTransport> hosts_;
};

}  // namespace symm
