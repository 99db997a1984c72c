// Two shots by sentinels, call after call, in every execution.

#include "labs/06_allreduce/algorithms/push/push.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    const auto push = scenes_of(through_mailbox<Push, float, Collective::kAllReduce, 2>);
    const Other early{.overlap = true, .triggers_first = true};
    return explore::explore_main(
        argc, argv,
        {
            {"push/2x1", push({{2}, {8, 8, 8}})},
            {"push/2x1/odd", push({{2}, {9, 12, 12}})},
            {"push/2x1/empty", push({{2}, {4, 4, 4}})},
            {"push/2x1/mixed", push({{2}, {4, 8, 4, 16, 4}})},
            {"push/2x2", push({{2, 2}, {16, 16, 16}})},
            {"push/2x1/wrap", push({{2}, {8, 8, 8, 8}, {0xfffffffd}})},
            {"push/2x1/in_place", push({{2}, {8, 4, 8}, {.in_place = true}})},
            {"push/2x1/ones", push({{2}, {8, 8, 8}, {.all_ones = true}})},
            {"push/2x1x2/grids", push({{2, 1, 2, true}, {16, 16, 16}})},
            {"push/2x1x2/fewer", push({{2, 1, 2, false, 1}, {16, 8, 16, 16}}), false},
            {"push/3x1", push({{3}, {12, 12, 12}})},
            {"push/3x1/2p", push({{3}, {24, 4, 24}})},
            {"push/3x1/unequal", push({{3}, {12, 4, 12}})},
            {"push/3x1/mixed", push({{3}, {12, 4, 12, 8, 12}})},
            {"push/5x1/2p", push({{5}, {40, 24, 40}}), false},
            {"push/2x2/idle", push({{2, 2}, {8, 16, 8}, {.overlap = true}}), false},
            {"push/2x1x2/overlap", push({{2, 1, 2}, {16, 8, 16}, {.overlap = true}}), false},
            {"push/2x1/overlap", push({{2}, {8, 16, 8}, {.overlap = true}})},
            {"push/2x1/early", push({{2}, {8, 16, 8}, early})},
            {"push/3x1/overlap", push({{3}, {12, 12}, {.overlap = true}})},
        });
}
