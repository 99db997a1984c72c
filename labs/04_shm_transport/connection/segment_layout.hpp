#pragma once
/// \file
/// Where the parts of connections lie in the ranks' segments.
///
/// Every rank owns one segment of host memory. A rank polls only its own: it holds the SendMem of
/// the connections on which it sends, the RecvMem of those on which it receives. The buffer of a
/// connection lies in the segment of its sender or of its receiver:
///
///     rank 0's segment: [ RecvMem 1->0, buffer 1->0 | SendMem 0->1 | ... ]
///     rank 1's segment: [ RecvMem 0->1, buffer 0->1 | SendMem 1->0 | ... ]
///
/// A load over a bus has to wait for the answer, a store does not. So the buffer is near the
/// receiver, which loads, unless a plan specifies the sender.
///
/// All ranks compute the same layout from the same plans.
///
/// Source: NCCL's shmSendSetup and shmRecvSetup in src/transport/shm.cc (NCCL_SHM_LOCALITY).

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "labs/04_shm_transport/connection/fifo.hpp"

namespace symm {

/// In whose segment a connection's buffer lies (NCCL_SHM_LOCALITY 1, 2).
enum class Locality : std::uint32_t { kSender, kReceiver };

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

/// The parts of a connection.
enum class Part { kSend, kReceive, kBuffer };

/// The layout of one rank's segment.
class SegmentLayout {
public:
    /// `plans` has the plans of all ranks, by rank.
    SegmentLayout(const std::vector<ConnectionPlan>& plans, int owner);

    /// Bytes of the segment; 0 if the rank has no connection.
    std::size_t bytes() const { return bytes_; }
    /// The offset of a connection's part, which must lie in this segment, from its start.
    std::size_t offset(Part part, int from, int to) const { return offsets_.at({part, from, to}); }

private:
    void add(Part part, int from, int to, std::size_t bytes);

    std::map<std::tuple<Part, int, int>, std::size_t> offsets_;
    std::size_t bytes_ = 0;
};

}  // namespace symm
