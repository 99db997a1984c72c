#include "labs/04_shm_transport/connection/segment_layout.hpp"

namespace symm {

SegmentLayout::SegmentLayout(const std::vector<ConnectionPlan>& plans, int owner) {
    const auto plan = [&](int rank) -> const ConnectionPlan& {
        return plans[static_cast<std::size_t>(rank)];
    };
    for (int peer = 0; peer < static_cast<int>(plans.size()); ++peer) {
        if (plan(owner).receives_from(peer)) {
            add(Part::kReceive, peer, owner, plan(owner).channels * sizeof(RecvMem));
            if (plan(owner).locality == Locality::kReceiver) {
                add(Part::kBuffer, peer, owner, plan(owner).buffer_bytes());
            }
        }
        if (plan(peer).receives_from(owner)) {
            add(Part::kSend, owner, peer, plan(peer).channels * sizeof(SendMem));
            if (plan(peer).locality == Locality::kSender) {
                add(Part::kBuffer, owner, peer, plan(peer).buffer_bytes());
            }
        }
    }
}

void SegmentLayout::add(Part part, int from, int to, std::size_t bytes) {
    constexpr std::size_t kAlignment = alignof(RecvMem);
    offsets_[{part, from, to}] = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace symm
