#pragma once
/// \file
/// Ring collectives between ranks: the connections, and a launch per call.

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/ranks/call_count.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/04_shm_transport/transport/transport.hpp"
#include "labs/05_device_prims/ring/ring_request.hpp"

namespace symm {

/// How a communicator is built: the same on all ranks.
struct RingOptions {
    RingMemory memory = RingMemory::kPeer;
    /// Limits a launch's blocks; 0: to suit the memory. Fewer if they are not all resident.
    std::uint32_t channels = 0;
    /// How long a kernel waits for a neighbour at one step.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
};

/// A protocol's connections with both neighbours.
struct Neighbours {
    Connection from_prev;
    Connection to_next;
};

/// One rank's end of the ring. Construction and calls are collective: all ranks make them in the
/// same order. Used by one thread at a time, with any context current or none.
class RingCommunicator {
public:
    /// `rank` must outlive it. If it fails on one rank, it throws on all ranks and releases
    /// everything; the bootstrap can still be used.
    explicit RingCommunicator(Rank& rank, const RingOptions& options = {});
    RingCommunicator(const RingCommunicator&) = delete;
    /// Waits for calls in flight, and ends them as end_calls() describes. If an exception destroys
    /// it, the other ranks are notified.
    ~RingCommunicator();

    /// Queues a call. All calls of a communicator go into one stream: they share counts and slots.
    /// Throws CudaError, and std::invalid_argument for a call that is not possible:
    /// a root that does not exist, an address not a multiple of the element's size, LL128
    /// where lines do not arrive whole. It has then queued nothing, and this rank's next call first
    /// waits for the other ranks (call_count.hpp).
    void queue(const RingRequest& call, CUstream stream);

    /// Waits for the stream. Throws if a kernel gave up waiting, naming the rank it waited for,
    /// block and step. After that the communicator can only be destroyed. Throws
    /// std::invalid_argument, and changes nothing, if the stream is being captured.
    void synchronize(const Stream& stream, std::string_view what);

    /// Why LL128 is refused; empty if it is allowed.
    const std::string& why_no_ll128() const { return why_no_ll128_; }
    /// Blocks of a call.
    std::uint32_t channels_of(const RingRequest& call) const;
    /// The connections of a protocol that the memory allows.
    const Neighbours& neighbours(Protocol protocol) const { return neighbours_.at(protocol); }

private:
    void require_possible(const RingRequest& call) const;
    void launch(const RingRequest& call, CUstream stream);
    void connect();
    Neighbours connect_in_peer_memory(std::uint64_t slot_bytes);
    Neighbours connect_in_host_memory(std::uint64_t slot_bytes);

    Rank& rank_;
    RingOptions options_;
    KernelTimeout timeout_;
    CallCount calls_;
    std::uint32_t channels_ = 0;
    std::string why_no_ll128_;
    std::deque<SymmetricRange> peers_;  ///< The connections' memory, or:
    std::deque<ShmTransport> hosts_;
    std::map<Protocol, Neighbours> neighbours_;
};

}  // namespace symm
