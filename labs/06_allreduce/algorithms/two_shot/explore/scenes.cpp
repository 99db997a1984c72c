// Two shots on windows, and each of the two alone, call after call, in every execution.

#include "labs/06_allreduce/algorithms/two_shot/explore/two_shots.hpp"
#include "tools/explore/explore_main.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    const auto two_shot = scenes_of(two_shots<Collective::kAllReduce>);
    const auto reduce_scatter = scenes_of(two_shots<Collective::kReduceScatter>);
    const auto all_gather = scenes_of(two_shots<Collective::kAllGather>);
    const auto broadcast = scenes_of(two_shots<Collective::kBroadcast>);
    const auto broadcast_alone = scenes_of(two_shots<Collective::kBroadcast, false>);
    const auto reduce = scenes_of(two_shots<Collective::kReduce>);
    const auto reduce_alone = scenes_of(two_shots<Collective::kReduce, false>);
    return explore::explore_main(
        argc, argv,
        {
            {"two_shot/2x1", two_shot({{2}, {8, 8}})},
            {"two_shot/2x1/one", two_shot({{2}, {1, 1}})},
            {"two_shot/2x2", two_shot({{2, 2}, {16, 16}})},
            {"two_shot/2x1x2", two_shot({{2, 1, 2}, {16, 16}})},
            {"two_shot/2x1x2/idle", two_shot({{2, 1, 2}, {4, 4, 4}})},
            {"two_shot/2x1/mixed", two_shot({{2}, {12, 4, 8}})},
            {"two_shot/2x1/wrap", two_shot({{2}, {8, 8, 8}, {~1U}})},
            {"two_shot/2x1/in_place", two_shot({{2}, {8, 8}, {.in_place = true}})},
            {"two_shot/2x1/unaligned",
             two_shot({{2}, {9, 5}, {.unaligned_in = true, .unaligned_out = true}})},
            {"two_shot/2x1x2/grids", two_shot({{2, 1, 2, true}, {16, 16, 16}})},
            {"two_shot/3x1", two_shot({{3}, {12, 12}})},
            {"two_shot/3x1/mixed", two_shot({{3}, {12, 4, 12}})},
            {"reduce_scatter/two_shot/2x1", reduce_scatter({{2}, {4, 8}})},
            {"reduce_scatter/two_shot/2x2", reduce_scatter({{2, 2}, {8, 8}})},
            {"reduce_scatter/two_shot/3x1", reduce_scatter({{3}, {4, 4}})},
            {"all_gather/two_shot/2x1", all_gather({{2}, {4, 8}})},
            {"all_gather/two_shot/2x2", all_gather({{2, 2}, {8, 8}})},
            {"all_gather/two_shot/3x1", all_gather({{3}, {4, 4}})},
            {"broadcast/two_shot/2x1", broadcast({{2}, {8, 9}})},
            {"broadcast/two_shot/2x2", broadcast({{2, 2}, {16, 16}})},
            {"broadcast/two_shot/3x1", broadcast({{3}, {12, 12}})},
            {"broadcast/two_shot/2x1/alone", broadcast_alone({{2}, {8, 9}})},
            {"broadcast/two_shot/3x1/alone", broadcast_alone({{3}, {4, 4}})},
            {"reduce/two_shot/2x1", reduce({{2}, {8, 9}})},
            {"reduce/two_shot/2x1/in_place", reduce({{2}, {8, 8}, {.in_place = true}})},
            {"reduce/two_shot/2x2", reduce({{2, 2}, {16, 16}})},
            {"reduce/two_shot/3x1", reduce({{3}, {12, 12}})},
            {"reduce/two_shot/2x1/alone", reduce_alone({{2}, {8, 9}})},
            {"reduce/two_shot/2x1/alone/unaligned",
             reduce_alone({{2}, {9, 5}, {.unaligned_in = true, .unaligned_out = true}})},
        });
}
