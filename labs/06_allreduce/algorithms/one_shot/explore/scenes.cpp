// One shot by packets, call after call, in every execution.

#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"
#include "labs/06_allreduce/explore/mailbox.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    using Word = std::uint32_t;
    const auto one_shot = scenes_of(through_mailbox<OneShot, Word>);
    return explore::explore_main(
        argc, argv,
        {
            {"one_shot/2x1", one_shot({{2}, {2, 2, 2}})},
            {"one_shot/2x1/2p", one_shot({{2}, {4, 4, 4}})},
            {"one_shot/2x1/odd", one_shot({{2}, {3, 1}})},
            {"one_shot/2x1/mixed", one_shot({{2}, {4, 2, 2, 2, 4}})},
            {"one_shot/2x1/clear", one_shot({{2}, {2, 4, 2, 2, 2, 2, 2, 4}})},
            {"one_shot/2x1/wrap", one_shot({{2}, {2, 2, 2, 2}, {0xfffffffd}})},
            {"one_shot/2x1/in_place", one_shot({{2}, {4, 2, 4}, {.in_place = true}})},
            {"one_shot/2x1/ones", one_shot({{2}, {2, 2, 2}, {.all_ones = true}})},
            {"one_shot/2x2", one_shot({{2, 2}, {4, 2, 4}})},
            {"one_shot/2x1x2", one_shot({{2, 1, 2}, {4, 4, 4}})},
            {"one_shot/2x2x2", one_shot({{2, 2, 2}, {4, 4}}), false},
            {"one_shot/2x1x2/grids", one_shot({{2, 1, 2, true}, {4, 4, 4, 2}})},
            {"one_shot/3x1", one_shot({{3}, {2, 2, 2}})},
            {"one_shot/3x1/mixed", one_shot({{3}, {2, 4, 2, 2, 4}})},
            {"clear/one_shot/2x1", one_shot({{2}, {2, 2, 2, 2, 4, 4}, {.old_packets = true}})},
            {"one_shot/1x1/overlap", one_shot({{1}, {2, 2}, {.overlap = true}})},
            {"one_shot/2x1/overlap", one_shot({{2}, {2, 2}, {.overlap = true}})},
            {"one_shot/2x1/overlap/3", one_shot({{2}, {4, 2, 4}, {.overlap = true}})},
            {"one_shot/2x2/overlap", one_shot({{2, 2}, {4, 4}, {.overlap = true}})},
            {"one_shot/2x33/overlap", one_shot({{2, 33}, {4, 4}, {.overlap = true}}), false},
            {"one_shot/2x1x2/idle", one_shot({{2, 1, 2}, {4, 2, 4}, {.overlap = true}}), false},
        });
}
