// Every rung of the ladder, on two to four ranks. Calls of several sizes follow each other without
// a word between the ranks, so they reuse slots, inputs and outputs as early as the rung allows.

#include "labs/06_allreduce/algorithms/ladder/ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/cuda/copy.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/05_device_prims/reduction/result_check.hpp"

namespace symm::ladder {
namespace {

// Fewer packs than ranks, and more than threads.
constexpr std::array<std::size_t, 10> kCounts{1, 301, 2, 7, 301, 300, 5, 13, 4, 301};
constexpr std::size_t kMost = *std::ranges::max_element(kCounts);

class Rungs : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Rungs, AddUpCallAfterCall) {
    for (const int ranks : {2, 3, 4}) {
        run_ranks({ranks, RankMode::kThread, {}}, [](Rank& rank) {
            const Stream stream;
            Verifier verifier(rank.rank(), rank.size());
            Ladder ladder(rank, rungs()[GetParam()], kMost);
            for (const std::size_t count : kCounts) {
                verifier.fill(stream, {}, ladder.in(), count);
                Verifier::poison(stream, ladder.out(), kMost * sizeof(float));
                ladder.all_reduce(count, stream);
                ladder.synchronize(stream, "the call");
                verifier.check(stream, {}, ladder.out(), count);
                float next = NAN;
                copy_to_host(&next, ladder.out() + count % kMost * sizeof(float), sizeof(next));
                EXPECT_TRUE(count == kMost || std::isnan(next))
                    << "rank " << rank.rank() << " has written element " << count << " of "
                    << count;
            }
            rank.bootstrap().barrier("done");
        });
    }
}

INSTANTIATE_TEST_SUITE_P(All, Rungs, ::testing::Range<std::size_t>(0, rungs().size()),
                         [](const auto& info) {
                             std::string name(rungs()[info.param].name.substr(2));
                             std::ranges::replace(name, ' ', '_');
                             return name;
                         });

}  // namespace
}  // namespace symm::ladder
