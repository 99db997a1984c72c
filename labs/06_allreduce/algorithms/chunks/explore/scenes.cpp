// Two shots in chunks, call after call, in every execution.

#include "labs/06_allreduce/algorithms/chunks/explore/in_chunks.hpp"
#include "tools/explore/explore_main.hpp"

int main(int argc, char** argv) {
    using namespace symm;
    const auto as = [](const Calls& calls, const InChunks& how) {
        return [=](Scene& scene) { chunks(scene, calls, how); };
    };
    const auto in_chunks = [=](const Calls& calls, unsigned chunk = 1) {
        return as(calls, {chunk});
    };
    const auto unpacked = [=](const Calls& calls, unsigned chunk = 1, std::uint32_t lag = 0) {
        return as(calls, {chunk, true, lag});
    };
    constexpr auto kScatter = Collective::kReduceScatter;
    constexpr auto kGather = Collective::kAllGather;
    return explore::explore_main(
        argc, argv,
        {
            {"chunks/2x1", in_chunks({{2}, {16, 8}})},
            {"chunks/2x1/one", in_chunks({{2}, {1, 12}})},
            {"chunks/2x1/steps", in_chunks({{2}, {63, 8}}, 5)},
            {"chunks/2x1/wrap", in_chunks({{2}, {16, 8}, {~1U}})},
            {"chunks/2x1/in_place", in_chunks({{2}, {16, 5}, {.in_place = true}})},
            {"chunks/2x1/unaligned",
             in_chunks({{2}, {9, 5}, {.unaligned_in = true, .unaligned_out = true}}, 4)},
            {"chunks/2x1x2/grids", in_chunks({{2, 1, 2, true}, {16, 16, 16}}), false},
            {"chunks/2x1/no_windows", unpacked({{2}, {16, 8}})},
            {"chunks/2x1/no_windows/lag", unpacked({{2}, {16, 8}, {5}}, 1, (1U << 31) + 1)},
            {"chunks/2x1/no_windows/in_place", unpacked({{2}, {16, 5}, {.in_place = true}})},
            {"chunks/2x1/reduce_scatter", in_chunks({{2}, {12, 5}, {}, kScatter}, 4)},
            {"chunks/2x1/then_copies", as({{2}, {16}}, {.then_copies = true}), false},
            {"chunks/2x1/reduce_scatter/then_copies",
             as({{2}, {8}, {}, kScatter}, {.then_copies = true}), false},
            {"chunks/2x1/pieces/reduce_scatter",
             in_chunks({{2}, {12, 8}, {.at_once = 8}, kScatter}, 4)},
            {"chunks/2x1/pieces/all_gather", in_chunks({{2}, {12, 8}, {.at_once = 8}, kGather}, 4)},
            {"chunks/2x1/all_gather", in_chunks({{2}, {12, 5}, {}, kGather})},
            {"chunks/2x1/all_gather/no_windows", unpacked({{2}, {12, 5}, {}, kGather}, 4)},
            {"chunks/2x2", in_chunks({{2, 2}, {16, 16}})},
            {"chunks/2x2/one", in_chunks({{2, 2}, {1, 1}})},
            {"chunks/2x2/gathers", in_chunks({{2, 2}, {4, 4}, {}, kGather})},
            {"chunks/2x1x2", in_chunks({{2, 1, 2}, {16}})},
            {"chunks/2x1/two_shots", as({{2}, {16, 8, 12}}, {.two_shots_up_to = 8}), false},
            {"chunks/2x1x2/two_shots", as({{2, 1, 2}, {8, 16}}, {.two_shots_up_to = 8}), false},
            {"chunks/3x1/two_shots", as({{3}, {12, 8, 12}}, {.two_shots_up_to = 8}), false},
            {"chunks/2x1x2/told_late", as({{2, 1, 2}, {16}}, {.told_late = true}), false},
            {"chunks/3x1", in_chunks({{3}, {12, 12}})},
            {"chunks/3x1/mixed", in_chunks({{3}, {12, 4, 12}}), false},
            {"chunks/3x1/no_windows", unpacked({{3}, {12, 12}})},
            {"chunks/3x1/reduce_scatter", in_chunks({{3}, {4, 4}, {}, kScatter})},
            {"chunks/3x1/all_gather", in_chunks({{3}, {4, 4}, {}, kGather})},
            {"chunks/3x2", in_chunks({{3, 2}, {12}})},
            {"chunks/3x1x2", in_chunks({{3, 1, 2}, {24}}), false},
            {"chunks/3x1x2/grids", in_chunks({{3, 1, 2, true}, {12, 12}}), false},
        });
}
