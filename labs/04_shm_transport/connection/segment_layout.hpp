#pragma once
/// \file
/// Where the parts of connections lie in the ranks' segments. A rank polls only its own segment: it
/// holds the SendMem of the connections on which it sends, the RecvMem of those on which it
/// receives. A connection's buffer is near the receiver, which loads, unless a plan specifies the
/// sender:
///
///     rank 0's segment: [ RecvMem 1->0, buffer 1->0 | SendMem 0->1 | ... ]
///     rank 1's segment: [ SendMem 1->0 | RecvMem 0->1, buffer 0->1 | ... ]
///
/// All ranks compute the same layout from the same plans.
/// Source: NCCL's shmSendSetup and shmRecvSetup in src/transport/shm.cc (NCCL_SHM_LOCALITY).

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/sys/named.hpp"
#include "labs/04_shm_transport/connection/fifo.hpp"

namespace symm {

/// In whose segment a connection's buffer lies (NCCL_SHM_LOCALITY 1, 2).
enum class Locality : std::uint32_t { kSender, kReceiver };
constexpr auto names_of(Locality) {
    return names("Locality", "sender", "receiver");
}

/// A rank's device and the connections on which it receives, known to all ranks.
struct ConnectionPlan {
    std::uint64_t senders;  ///< The ranks that it receives from, one bit each.
    std::uint64_t slot_bytes;
    std::uint64_t staging_bytes;
    std::uint32_t channels;
    Locality locality;
    int device;

    bool receives_from(int rank) const { return (senders >> rank & 1) != 0; }
    std::size_t buffer_bytes() const { return channels * kSteps * slot_bytes + staging_bytes; }
};

/// The parts of all connections.
struct SegmentLayout {
    /// A connection's parts, as offsets in the segments that they lie in.
    struct Parts {
        std::size_t send;     ///< In the sender's segment.
        std::size_t receive;  ///< In the receiver's segment.
        std::size_t buffer;   ///< In the segment of buffer_owner.
        int buffer_owner;
    };
    std::vector<std::size_t> bytes;  ///< Each rank's segment; 0 if it has no connection.
    std::map<std::pair<int, int>, Parts> parts;  ///< By sender and receiver.

    /// `plans` has the plans of all ranks, by rank.
    explicit SegmentLayout(const std::vector<ConnectionPlan>& plans) : bytes(plans.size()) {
        const auto add = [this](int owner, std::size_t part) {
            constexpr std::size_t kAlignment = alignof(RecvMem);
            std::size_t& end = bytes[static_cast<std::size_t>(owner)];
            return std::exchange(end, end + (part + kAlignment - 1) / kAlignment * kAlignment);
        };
        for (int to = 0; to < static_cast<int>(plans.size()); ++to) {
            const ConnectionPlan& plan = plans[static_cast<std::size_t>(to)];
            for (int from = 0; from < static_cast<int>(plans.size()); ++from) {
                if (plan.receives_from(from)) {
                    const int owner = plan.locality == Locality::kSender ? from : to;
                    parts[{from, to}] = {add(from, plan.channels * sizeof(SendMem)),
                                         add(to, plan.channels * sizeof(RecvMem)),
                                         add(owner, plan.buffer_bytes()), owner};
                }
            }
        }
    }
};

}  // namespace symm
