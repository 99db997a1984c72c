#include "labs/05_device_prims/ring/peer_connections.hpp"

#include "common/cuda/copy.hpp"
#include "common/cuda/device.hpp"

namespace symm {
namespace {

/// Where the parts of a rank's memory begin.
struct Layout {
    std::size_t receive;
    std::size_t steps;
    std::size_t slots;
    std::size_t end;

    Layout(std::uint32_t channels, std::uint64_t slot_bytes)
        : receive(channels * sizeof(SendMem)),
          steps(receive + channels * sizeof(RecvMem)),
          slots((steps + 2 * channels * sizeof(std::uint64_t) + 127) / 128 * 128),
          end(slots + channels * kSteps * slot_bytes) {}
};

}  // namespace

PeerConnections::PeerConnections(Rank& rank, std::uint32_t channels, std::uint64_t slot_bytes)
    : range_(rank, Layout(channels, slot_bytes).end) {
    rank.bootstrap().together("05: zeroed connections", [&] {
        const CurrentContext current(rank.gpu());
        zero(range_.local(), range_.size());
    });
    const Layout at(channels, slot_bytes);
    const int ranks = rank.size();
    auto* const steps = range_.at<std::uint64_t>(rank.rank(), at.steps);
    const auto connection = [&](int sender, std::uint64_t* counts) -> Connection {
        const int receiver = (sender + 1) % ranks;
        return {range_.at<SendMem>(sender),
                range_.at<RecvMem>(receiver, at.receive),
                counts,
                range_.at<std::byte>(receiver, at.slots),
                slot_bytes,
                0,
                channels};
    };
    to_next_ = connection(rank.rank(), steps);
    from_prev_ = connection((rank.rank() + ranks - 1) % ranks, steps + channels);
}

}  // namespace symm
