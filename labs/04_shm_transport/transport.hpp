#pragma once
/// \file
/// Sending and receiving between ranks whose GPUs cannot reach each other: through host memory.
///
/// Each rank that receives owns one HostSegment, with a FifoConnection for each rank that sends to
/// it. A load over the bus has to wait for the answer, a store does not. So the segment is near the
/// receiver, which loads (on the cuMem path, on its GPU's NUMA node), as with NCCL's default of
/// NCCL_SHM_LOCALITY.
///
///     rank 0 --store--> [ rank 1's segment: from 0 | from 2 ] --load--> rank 1
///     rank 2 --store-----------------------------------^
///
/// Source: NCCL's src/transport/shm.cc.

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/deadline.hpp"
#include "labs/04_shm_transport/fifo.hpp"
#include "labs/04_shm_transport/host_path.hpp"
#include "labs/04_shm_transport/host_segment.hpp"

namespace symm {

class Rank;

/// How a transport is built. A connection uses the `channels` and `slot_bytes` of its
/// receiver; its sender's are ignored.
struct TransportOptions {
    /// FIFOs, and so blocks, per direction of a transfer; 0: 8 on a GPU, 2 on an emulated one.
    std::uint32_t channels = 0;
    /// Bytes of a slot, a multiple of 128.
    std::uint64_t slot_bytes = 64 * 1024;
    /// The path to host memory; empty: cuMem where all ranks can use it.
    std::optional<HostPath> path;
    /// How long a kernel waits for its peer at one slot.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
};

/// What a rank sends or receives: `bytes` (may be 0) at `data`, memory that its device reaches. Any
/// address works; multiples of 16 are faster.
struct Transfer {
    int peer;
    CUdeviceptr data;
    std::size_t bytes;
};

/// One rank's transport. Move-only. Used by its rank's thread only, and needs that rank's context
/// current, at its destruction too.
///
/// Declare it after the buffers that it moves, so that it is destroyed before them. If an exception
/// destroys the transport, it tells the other ranks, ends its own kernels and waits for them. If
/// the buffers went first, freeing them could wait for the kernels of other ranks on the same
/// device, and those wait for this rank.
///
/// Construction is collective, transfers are not: each send matches one receive of the same number
/// of bytes on the other side. They match by their order; there are no tags. From one rank to
/// another, one transfer runs at a time: queue them on one stream, or order the streams.
class ShmTransport {
public:
    /// Connects this rank with `senders`, the ranks that it will receive from. They are told over
    /// the rank's bootstrap. `rank` must outlive the transport. If it fails on one rank, it throws
    /// on all ranks and leaves nothing behind. Throws std::invalid_argument for a rank that does
    /// not exist or options out of range.
    ShmTransport(Rank& rank, std::span<const int> senders, const TransportOptions& options = {});
    ShmTransport(ShmTransport&&) noexcept = default;
    ShmTransport& operator=(ShmTransport&&) noexcept = default;
    ~ShmTransport();

    /// Queues a send. The data may be changed once the stream has executed it. Throws CudaError,
    /// and std::invalid_argument where `to.peer` does not receive from this rank.
    void send(const Transfer& to, CUstream stream);
    /// Queues a receive. Throws as send().
    void receive(const Transfer& from, CUstream stream);
    /// Queues both as one kernel. Ranks in a ring need it: a send of more than the slots hold ends
    /// only after its receive has begun. Throws as send().
    void send_receive(const Transfer& to, const Transfer& from, CUstream stream);

    /// Waits for all that was queued on `stream`. Throws std::runtime_error where a transfer
    /// failed. The error names the peer: the wait for it timed out, or it has failed, is gone, or
    /// sent another number of bytes. The received data is then undefined and the counters of the
    /// two sides differ, so every later call throws the same.
    void finish(const Stream& stream);

    /// The path to host memory that the ranks took and, if it is not cuMem, the reason.
    const HostPathChoice& path() const { return path_; }
    /// This rank's segment, empty where it receives from nobody.
    const HostSegment& segment() const { return *segment_; }

private:
    struct Plan;
    /// A connection to a receiver, in that rank's segment, which this process has mapped.
    struct Outbound {
        std::shared_ptr<HostSegment> segment;
        FifoConnection connection;
    };

    void build(const std::vector<Plan>& plans);
    const FifoConnection& outbound_to(int peer) const;
    const FifoConnection& inbound_from(int peer) const;
    void queue(const Transfer* to, const Transfer* from, CUstream stream);

    Rank* rank_ = nullptr;
    HostPathChoice path_;
    std::shared_ptr<HostSegment> segment_;   // shared with the other ranks if ranks are threads
    std::map<int, Outbound> outbound_;       // by the rank that receives
    std::map<int, FifoConnection> inbound_;  // by the rank that sends, in segment_
    std::optional<KernelTimeout> timeout_;
    std::string broken_;  // why a transfer failed; empty where none has
};

}  // namespace symm
