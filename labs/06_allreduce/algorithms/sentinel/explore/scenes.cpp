// One shot by sentinels and its kernel for one pack a thread, call after call, in every execution.

#include "labs/06_allreduce/algorithms/sentinel/one_pack.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    const auto sentinel = scenes_of(through_mailbox<Sentinel, float>);
    const auto one_pack = scenes_of(through_mailbox<SentinelOfOnePack, float>);
    const Other early{.overlap = true, .triggers_first = true};
    return explore::explore_main(
        argc, argv,
        {
            {"sentinel/2x1", sentinel({{2}, {4, 4, 4}})},
            {"sentinel/2x1/2p", sentinel({{2}, {8, 8, 8}})},
            {"sentinel/2x1/odd", sentinel({{2}, {5, 8, 8}})},
            {"sentinel/2x1/5p", sentinel({{2}, {16, 4, 20}, {.slots = 8}})},
            {"sentinel/2x2", sentinel({{2, 2}, {8, 8, 8}})},
            {"sentinel/2x1/wrap", sentinel({{2}, {4, 4, 4, 4}, {0xfffffffd}})},
            {"sentinel/2x1/in_place", sentinel({{2}, {8, 4, 8}, {.in_place = true}})},
            {"sentinel/2x1/ones", sentinel({{2}, {4, 4, 4}, {.all_ones = true}})},
            {"sentinel/2x1x2/grids", sentinel({{2, 1, 2, true}, {8, 8, 8, 4}})},
            {"sentinel/2x1x2/fewer", sentinel({{2, 1, 2, false, 1}, {8, 4, 8, 8}})},
            {"sentinel/3x1", sentinel({{3}, {4, 4, 4}})},
            {"sentinel/3x1/mixed", sentinel({{3}, {4, 8, 4, 1, 8}})},
            {"one_pack/2x1", one_pack({{2}, {4, 4, 4}})},
            {"one_pack/2x2", one_pack({{2, 2}, {8, 4, 8}})},
            {"one_pack/2x1/wrap", one_pack({{2}, {4, 4, 4, 4}, {0xfffffffd}})},
            {"one_pack/2x1/in_place", one_pack({{2}, {4, 4, 4}, {.in_place = true}})},
            {"one_pack/2x1/ones", one_pack({{2}, {4, 4, 4}, {.all_ones = true}})},
            {"one_pack/2x1x2", one_pack({{2, 1, 2}, {8, 8, 4}})},
            {"one_pack/3x1", one_pack({{3}, {4, 4, 4}})},
            {"one_pack/2x1/overlap", one_pack({{2}, {4, 4}, {.overlap = true}})},
            {"one_pack/2x1/overlap/3", one_pack({{2}, {4, 4, 4}, {.overlap = true}})},
            {"one_pack/2x1/early", one_pack({{2}, {4, 4, 4}, early})},
            {"one_pack/2x2/overlap", one_pack({{2, 2}, {8, 8}, {.overlap = true}})},
            {"one_pack/2x1x2/overlap", one_pack({{2, 1, 2}, {8, 8}, {.overlap = true}})},
            {"one_pack/2x2/idle", one_pack({{2, 2}, {8, 4}, {.overlap = true}})},
            {"one_pack/2x1x2/idle", one_pack({{2, 1, 2}, {8, 4, 8}, {.overlap = true}}), false},
            {"one_pack/1x1/overlap", one_pack({{1}, {4, 4}, {.overlap = true}})},
            {"one_pack/3x1/overlap", one_pack({{3}, {4, 4, 4}, {.overlap = true}})},
            {"sentinel/2x1/overlap", sentinel({{2}, {5, 8, 4}, {.overlap = true}})},
            {"sentinel/2x1x2/overlap", sentinel({{2, 1, 2}, {8, 8}, {.overlap = true}}), false},
            {"sentinel/2x1x2/idle", sentinel({{2, 1, 2}, {8, 4, 8}, {.overlap = true}}), false},
        });
}
