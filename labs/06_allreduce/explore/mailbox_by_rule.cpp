// The algorithms with a mailbox, and each collective, in the scenes of by_rule.hpp.

#include "labs/06_allreduce/algorithms/push/push.hpp"
#include "labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/explore/by_rule.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

namespace symm {
namespace {

/// Packets of elements of one size.
template <class T>
void add_packets(ByRule& rules, const std::string& type) {
    constexpr Unit kPacket{.elements = 8 / sizeof(T), .rounds = std::is_same_v<T, float>};
    rules.add("one_shot" + type, kPacket, Collective::kAllReduce, through_mailbox<OneShot, T>);
    rules.add("reduce_scatter" + type, kPacket, Collective::kReduceScatter,
              through_mailbox<ReduceScatterPackets, T, Collective::kReduceScatter>);
    rules.add("all_gather" + type, kPacket, Collective::kAllGather,
              through_mailbox<AllGatherPackets, T, Collective::kAllGather>);
    rules.add("broadcast" + type, kPacket, Collective::kBroadcast,
              through_mailbox<BroadcastPackets, T, Collective::kBroadcast>);
    rules.add("reduce" + type, kPacket, Collective::kReduce,
              through_mailbox<ReducePackets, T, Collective::kReduce>);
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    ByRule rules;
    add_packets<float>(rules, "");
    add_packets<std::uint8_t>(rules, "/bytes");
    rules.add("sentinel", {.elements = 4, .rounds = true}, Collective::kAllReduce,
              through_mailbox<Sentinel, float>);
    rules.add("push", {.elements = 4, .is_cut = true, .rounds = true}, Collective::kAllReduce,
              through_mailbox<Push, float, Collective::kAllReduce, 2>);
    return explore::explore_main(argc, argv, rules.scenes);
}
