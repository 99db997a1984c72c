// The algorithms for large calls, and each collective, in the scenes of by_rule.hpp.

#include "labs/06_allreduce/algorithms/chunks/explore/in_chunks.hpp"
#include "labs/06_allreduce/algorithms/copy/explore/copies.hpp"
#include "labs/06_allreduce/algorithms/two_shot/explore/two_shots.hpp"
#include "labs/06_allreduce/explore/by_rule.hpp"

namespace symm {
namespace {

template <Collective kCollective>
void add_windows(ByRule& rules, const std::string& name) {
    const bool has_parts = row_of(kCollective).has_parts();
    rules.add(name + "/two_shot", {.elements = 4, .is_cut = !has_parts, .rounds = true},
              kCollective, two_shots<kCollective>);
    if constexpr (kCollective != Collective::kBroadcast && kCollective != Collective::kReduce) {
        const auto add_chunks = [&](const std::string& windows, bool unpacks) {
            rules.add(name + "/chunks" + windows,
                      {.elements = 4, .is_cut = !has_parts, .has_turns = true, .rounds = true},
                      kCollective, [=](Scene& scene, const Calls& calls) {
                          chunks(scene, calls, {4, unpacks});
                      });
        };
        add_chunks("", false);
        if (kCollective != Collective::kReduceScatter) {
            add_chunks("/no_windows", true);
        }
        // A pack for each piece. With 2 ranks and 1 thread a larger call is made in rounds.
        rules.add(name + "/copy",
                  {.elements = 12,
                   .is_cut = !has_parts,
                   .has_turns = true,
                   .has_steps = true,
                   .rounds = true,
                   .gives_up = false},
                  kCollective, [](Scene& scene, const Calls& calls) {
                      copies(scene, calls, Pieces::of(calls.who.ranks),
                             3 * calls.who.threads * calls.who.blocks + 1);
                  });
    }
}

}  // namespace
}  // namespace symm

int main(int argc, char** argv) {
    using namespace symm;
    ByRule rules;
    add_windows<Collective::kAllReduce>(rules, "all_reduce");
    add_windows<Collective::kReduceScatter>(rules, "reduce_scatter");
    add_windows<Collective::kAllGather>(rules, "all_gather");
    add_windows<Collective::kBroadcast>(rules, "broadcast");
    add_windows<Collective::kReduce>(rules, "reduce");
    return explore::explore_main(argc, argv, rules.scenes);
}
