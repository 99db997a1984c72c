// The other collectives by packets, call after call, in every execution.

#include "labs/06_allreduce/algorithms/reduce_scatter_all_gather/packets.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    using Word = std::uint32_t;
    const auto reduce_scatter =
        scenes_of(through_mailbox<ReduceScatterPackets, Word, Collective::kReduceScatter>);
    const auto all_gather =
        scenes_of(through_mailbox<AllGatherPackets, Word, Collective::kAllGather>);
    const auto broadcast =
        scenes_of(through_mailbox<BroadcastPackets, Word, Collective::kBroadcast>);
    const auto reduce = scenes_of(through_mailbox<ReducePackets, Word, Collective::kReduce>);
    return explore::explore_main(
        argc, argv,
        {
            {"reduce_scatter/packets/2x1", reduce_scatter({{2}, {1, 4, 3, 4}})},
            {"reduce_scatter/packets/2x1/pieces", reduce_scatter({{2}, {4, 3}, {.at_once = 2}})},
            {"reduce_scatter/packets/2x2", reduce_scatter({{2, 2}, {4, 4, 4}})},
            {"reduce_scatter/packets/3x1", reduce_scatter({{3}, {2, 2, 2}})},
            {"all_gather/packets/2x1", all_gather({{2}, {1, 4, 3, 4}})},
            {"all_gather/packets/2x1/pieces", all_gather({{2}, {4, 3}, {.at_once = 2}})},
            {"all_gather/packets/2x2", all_gather({{2, 2}, {4, 4, 4}})},
            {"all_gather/packets/3x1", all_gather({{3}, {2, 2, 2}})},
            {"broadcast/packets/2x1", broadcast({{2}, {1, 4, 3, 4}})},
            {"broadcast/packets/2x1/in_place", broadcast({{2}, {4, 4}, {.in_place = true}})},
            {"broadcast/packets/2x2", broadcast({{2, 2}, {4, 4, 4}})},
            {"broadcast/packets/3x1", broadcast({{3}, {4, 2, 4}})},
            {"broadcast/packets/3x1/reduced", broadcast({{3}, {1, 2, 1}, {.all_reduced = 1}})},
            {"reduce/packets/2x1", reduce({{2}, {1, 4, 3, 4}})},
            {"reduce/packets/2x2", reduce({{2, 2}, {4, 4, 4}})},
            {"reduce/packets/3x1", reduce({{3}, {4, 2, 4}})},
            {"broadcast/packets/3x2", broadcast({{3, 2}, {4, 2}}), false},
            {"reduce/packets/3x2", reduce({{3, 2}, {4, 2}}), false},
            {"clear/reduce_scatter/2x1",
             reduce_scatter({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"clear/all_gather/2x1", all_gather({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"clear/broadcast/2x1",
             broadcast({{2}, {4, 4, 4, 4, 3, 3}, {.old_packets = true, .all_reduced = 3}})},
            {"clear/reduce/2x1",
             reduce({{2}, {4, 4, 4, 4, 3, 3}, {.old_packets = true, .all_reduced = 3}})},
            {"reduce_scatter/packets/2x1/overlap",
             reduce_scatter({{2}, {4, 3}, {.overlap = true}})},
            {"all_gather/packets/2x1/overlap", all_gather({{2}, {4, 3}, {.overlap = true}})},
            {"all_gather/packets/2x2/overlap", all_gather({{2, 2}, {4, 4}, {.overlap = true}}),
             false},
            {"all_gather/packets/2x1x2/idle", all_gather({{2, 1, 2}, {4, 2, 4}, {.overlap = true}}),
             false},
            {"broadcast/packets/2x1/overlap", broadcast({{2}, {4, 4}, {.overlap = true}})},
            {"reduce/packets/2x1/overlap", reduce({{2}, {4, 4}, {.overlap = true}})},
            {"reduce_scatter/packets/2x2/idle", reduce_scatter({{2, 2}, {4, 2}, {.overlap = true}}),
             false},
            {"broadcast/packets/2x2/idle", broadcast({{2, 2}, {4, 2}, {.overlap = true}}), false},
            {"reduce/packets/2x2/idle", reduce({{2, 2}, {4, 2}, {.overlap = true}}), false},
        });
}
