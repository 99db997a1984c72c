#pragma once
/// \file
/// Sending and receiving between ranks whose GPUs cannot reach each other: through host memory.
///
/// Each rank that receives owns one HostSegment, with a FifoConnection for each rank that sends to
/// it. The segment lies with the receiver because reading over the bus has to wait for an answer,
/// and writing has not: the receiver, who reads, gets the near memory (NCCL's NCCL_SHM_LOCALITY has
/// the same default).
///
///     rank 0 --store--> [ rank 1's segment: from 0 | from 2 ] --load--> rank 1
///     rank 2 --store-----------------------------------^
///
/// Source: NCCL's src/transport/shm.cc.

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/deadline.hpp"
#include "labs/04_shm_transport/host_path.hpp"
#include "labs/04_shm_transport/host_segment.hpp"

namespace symm {

class Rank;
class Bootstrap;
struct FifoConnection;
struct TransferKernel;

/// How a transport is built. The values of a receiver shape the connections to it.
struct TransportOptions {
    /// FIFOs, and so blocks, for each direction of a transfer; 0: 8 on a GPU, 2 on an emulated one.
    std::uint32_t channels = 0;
    /// Threads a block; 0: 512 on a GPU, 32 on an emulated one.
    unsigned threads = 0;
    /// Bytes of a slot, a multiple of 128.
    std::uint64_t slot_bytes = 64 * 1024;
    /// The way to host memory; empty: the best that all ranks can do. The same on all ranks.
    std::optional<HostPath> path;
    /// How long a kernel waits for its peer at one slot.
    std::chrono::nanoseconds limit = Deadline::standard_limit();
};

/// What a rank sends or receives: `bytes` (0 is nothing) at `data`, memory that its device reaches.
/// Addresses that are multiples of 16 are fast, others are right.
struct Transfer {
    int peer;
    CUdeviceptr data;
    std::size_t bytes;
};

/// One rank's transport. Move-only. Used by its rank's thread only, and needs that rank's context
/// current, at its destruction too.
///
/// Construction is collective, transfers are not: each send is met by one receive of the same
/// number of bytes on the other side, in the same order. The order is what matches them, there are
/// no tags. From one rank to another, one transfer runs at a time: queue them on one stream, or
/// order the streams.
class ShmTransport {
public:
    /// Connects this rank with those it will receive from, `senders`; the others learn it from the
    /// rendezvous. Throws on all ranks where it fails on one, and leaves nothing behind:
    /// std::invalid_argument for a rank that does not exist or options out of range.
    ShmTransport(Rank& rank, std::span<const int> senders, const TransportOptions& options = {},
                 Deadline deadline = Deadline::standard());
    ShmTransport(ShmTransport&&) noexcept;
    ShmTransport& operator=(ShmTransport&&) noexcept;
    ~ShmTransport();

    /// Queues a send. The data may be changed once the stream has passed it. Throws
    /// std::invalid_argument where `to.peer` does not receive from this rank, CudaError.
    void send(const Transfer& to, CUstream stream);
    /// Queues a receive. Throws as send().
    void receive(const Transfer& from, CUstream stream);
    /// Queues both as one kernel: what ranks in a ring need, since a send alone ends only when the
    /// receiver has begun. Throws as send().
    void send_receive(const Transfer& to, const Transfer& from, CUstream stream);

    /// Waits for all that was queued on `stream`, and throws std::runtime_error where a transfer
    /// failed: a peer that did not come within the limit, by name, a rank that has failed or is
    /// gone, or one that sent another number of bytes. What did arrive is then worth nothing, the
    /// counters of the two sides no longer match, and every later call throws the same.
    void finish(const Stream& stream);

    /// The way to host memory that the ranks took, and why no better one.
    const HostPathChoice& path() const { return path_; }
    /// This rank's segment, empty where it receives from nobody.
    const HostSegment& segment() const;
    /// Where this process finds the FIFOs to `peer`, in that rank's segment. Throws as send().
    CUdeviceptr outbound_address(int peer) const;
    /// Blocks that a send of `bytes` to `peer` takes. Throws as send().
    std::uint32_t blocks(int peer, std::size_t bytes) const;

private:
    struct Peer;
    struct Plan;

    void build(Rank& rank, const std::vector<Plan>& plans, Deadline deadline);
    const FifoConnection& outbound_to(int peer) const;
    const FifoConnection& inbound_from(int peer) const;
    void queue(const Transfer* to, const Transfer* from, CUstream stream);

    Bootstrap* bootstrap_ = nullptr;  // the rank's, who outlives its transport
    int rank_ = 0;
    unsigned threads_ = 0;
    HostPathChoice path_;
    std::shared_ptr<HostSegment> segment_;  // ranks that are threads use it as well
    std::vector<Peer> peers_;
    std::optional<KernelTimeout> timeout_;
    std::optional<PinnedMemory> mismatch_;
    std::string broken_;
};

}  // namespace symm
