#include "labs/05_device_prims/ring/peer_connections.hpp"

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"

namespace symm {

PeerConnections::PeerConnections(Rank& rank, std::uint32_t channels, std::uint64_t slot_bytes)
    : rank_(rank.rank()),
      ranks_(rank.size()),
      channels_(channels),
      slot_bytes_(slot_bytes),
      range_(rank, bytes()) {
    rank.bootstrap().together("05: zeroed connections", [&] {
        const CurrentContext current(rank.gpu());
        zero(range_.local(), range_.size());
    });
}

std::size_t PeerConnections::offset_of_slots() const {
    const std::size_t steps = 2 * channels_ * sizeof(std::uint64_t);
    return (offset_of_steps() + steps + 127) / 128 * 128;
}

std::size_t PeerConnections::bytes() const {
    return offset_of_slots() + channels_ * kSteps * slot_bytes_;
}

Connection PeerConnections::connection(int sender, bool sends) const {
    const int receiver = (sender + 1) % ranks_;
    return {range_.at<SendMem>(sender),
            range_.at<RecvMem>(receiver, offset_of_receive()),
            range_.at<std::uint64_t>(rank_, offset_of_steps()) + (sends ? 0 : channels_),
            range_.at<std::byte>(receiver, offset_of_slots()),
            slot_bytes_,
            0,
            channels_};
}

Connection PeerConnections::to_next() const {
    return connection(rank_, true);
}

Connection PeerConnections::from_prev() const {
    return connection((rank_ + ranks_ - 1) % ranks_, false);
}

}  // namespace symm
