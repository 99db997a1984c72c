#pragma once
/// \file
/// Sending and receiving between ranks whose GPUs cannot reach each other, through host memory: a
/// HostSegment of each rank, which both sides of a connection map (segment_layout.hpp). Kernels
/// copy the data, or, on either side, the copy engine (proxy.hpp):
///
///     proxy      sender's GPU                       host memory            receiver's GPU
///     none       kernel ----------------------------> slots -----------------------------> kernel
///     sender     kernel -> device slots -> engine --> slots -----------------------------> kernel
///     receiver   kernel ----------------------------> slots --> engine -> device slots --> kernel
///     both       kernel -> device slots -> engine --> slots --> engine -> device slots --> kernel

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

#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/ranks/rank.hpp"
#include "common/sys/deadline.hpp"
#include "common/sys/named.hpp"
#include "labs/04_shm_transport/connection/fifo.hpp"
#include "labs/04_shm_transport/connection/segment_layout.hpp"
#include "labs/04_shm_transport/host_memory/host_path.hpp"
#include "labs/04_shm_transport/host_memory/host_segment.hpp"
#include "labs/04_shm_transport/host_memory/pinned_calloc.hpp"
#include "labs/04_shm_transport/proxy/proxy.hpp"

namespace symm {

/// On which side the copy engine moves the data (NCCL_SHM_MEMCPY_MODE 1, 2, 3).
enum class ProxySide : unsigned { kNone, kSender, kReceiver, kBoth };
constexpr auto names_of(ProxySide) {
    return names("ProxySide", "none", "sender", "receiver", "both");
}

/// How a transport is built: the table of knobs in README.md. A connection takes the first four of
/// its receiver; its sender's are ignored.
struct TransportOptions {
    std::uint32_t channels = 0;    ///< Per direction of a transfer, each with a block. 0: chosen.
    std::uint64_t slot_bytes = 0;  ///< A multiple of 128; 0: chosen.
    std::uint64_t staging_bytes = 0;          ///< Bytes of staging(), a multiple of 128.
    Locality locality = Locality::kReceiver;  ///< The side whose segment holds the slots.
    ProxySide proxy = ProxySide::kNone;  ///< The sides on which this rank uses its copy engine.
    std::optional<HostPath> path = {};   ///< Empty: cuMem if all ranks can use it.
    std::optional<std::chrono::nanoseconds> limit =
        {};  ///< The longest wait for the peer at a slot.
};

/// The data that a rank sends or receives: `bytes` (may be 0) at `data`, memory that its device
/// reaches. Any address works; multiples of 16 are faster.
struct Transfer {
    int peer;
    CUdeviceptr data;
    std::size_t bytes;
};

/// One rank's transport. Move-only. One thread at a time may use it, with any context current or
/// none.
///
/// With a sender's proxy, call finish() before destruction: data that the proxy has not handed
/// over yet is lost. With any proxy, make no call that waits for the device (proxy/README.md) until
/// finish() has returned. Destruction waits for transfers in flight, and ends them as end_calls()
/// describes.
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
    /// Connects this rank with `senders`, the ranks that it will receive from. They are notified
    /// over its bootstrap. `rank` must outlive the transport. If it fails on one rank, it throws
    /// on all ranks and leaves nothing behind. Throws std::invalid_argument for a rank that does
    /// not exist or options out of range.
    ShmTransport(Rank& rank, std::span<const int> senders, const TransportOptions& options = {});
    ShmTransport(ShmTransport&&) noexcept = default;
    ~ShmTransport();

    /// Queues a send. The data may be changed once the stream has executed it. Throws CudaError,
    /// and std::invalid_argument if `to.peer` does not receive from this rank, or there can be no
    /// such memory.
    void send(const Transfer& to, CUstream stream);
    /// Queues a receive. Throws as send().
    void receive(const Transfer& from, CUstream stream);
    /// Queues both as one kernel. Ranks in a ring need it: a send of more than the slots hold ends
    /// only after its receive has begun. Throws as send().
    void send_receive(const Transfer& to, const Transfer& from, CUstream stream);

    /// Host memory of the connection to `peer`, for kernels and copies of this rank to write. Data
    /// sent from there is not copied into slots, unless this rank has a sender's proxy. Its size is
    /// the receiver's `staging_bytes`. Throws std::invalid_argument if `peer` does not receive
    /// from this rank.
    CUdeviceptr staging(int peer) const;

    /// Waits for all that was queued on `stream`; with a sender's proxy, also until it has handed
    /// over all that kernels of this rank have sent, on any stream. Throws std::runtime_error
    /// if a transfer failed. The error names the peer: the wait for it timed out, or it has
    /// failed, is gone, or sent another number of bytes; or it is the proxy's. The received data is
    /// then undefined and the counters of the two sides differ, so every later call throws the
    /// same. Throws std::invalid_argument, and changes nothing, if the stream is being captured.
    void finish(const Stream& stream);

    /// The path to host memory that the ranks took and, if it is not cuMem, the reason.
    const HostPathChoice& path() const { return path_; }
    /// The connections themselves, for kernels of the caller instead of send() and receive(): a
    /// connection serves one or the other. Throw std::invalid_argument if there is none.
    const Connection& connection_to(int peer) const { return link(out_, peer).kernels; }
    const Connection& connection_from(int peer) const { return link(in_, peer).kernels; }
    /// This rank's segment, empty if it has no connection.
    const HostSegment& segment() const { return *segments_.at(rank_->rank()); }

private:
    /// This rank's end of a connection.
    struct Link {
        Connection shared;   ///< In host memory, with the peer.
        Connection kernels;  ///< What kernels use: `shared`, or a connection with the proxy.
        DeviceMemory steps;  ///< A counter for each channel.
        std::optional<PinnedMemory> control = {};  ///< SendMem and RecvMem of that connection.
        std::optional<DeviceMemory> slots = {};    ///< Its slots. Empty if there is no proxy.
    };
    /// All connections in one direction.
    struct Links {
        std::map<int, Link> by_peer;
        std::unique_ptr<Proxy> proxy;  ///< If this rank has one: a thread and a stream.
    };

    void share_segments(const std::vector<ConnectionPlan>& plans, std::size_t bytes);
    void connect(const std::vector<ConnectionPlan>& plans, const SegmentLayout& layout,
                 ProxySide proxy);
    void require_resident() const;
    void start_proxy(Links& links);
    const Link& link(const Links& links, int peer) const;
    void queue(const Transfer* to, const Transfer* from, CUstream stream);
    void drain() const;
    std::string proxy_failure() const;

    Rank* rank_ = nullptr;
    HostPathChoice path_;
    // This rank's segment, and those of its peers. Ranks that are threads share them.
    std::map<int, std::shared_ptr<HostSegment>> segments_;
    std::unique_ptr<KernelTimeout> timeout_;
    Links out_;
    Links in_;
    std::string broken_;  // why a transfer failed; empty if none has
};

}  // namespace symm
