// Every rung of the ladder, on two to four ranks. Calls of several sizes follow each other without
// a word between the ranks, so they reuse slots, inputs and outputs as early as the rung allows.

#include "labs/06_allreduce/algorithms/ladder/ladder_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/ranks/ranks.hpp"

namespace symm::ladder {
namespace {

/// Fewer packs than ranks, and more than threads; for the fused call more rows than blocks.
std::vector<std::size_t> counts_for(const RungRow& row) {
    const std::size_t many = row.fused ? 2 * kRowFloats + 5 : 301;
    return {many, 1, 2, many, 7, 300, 5};
}

class Rungs : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Rungs, AddUpCallAfterCall) {
    const RungRow& row = rungs()[GetParam()];
    const std::vector<std::size_t> counts = counts_for(row);
    const std::size_t most = std::ranges::max(counts);
    for (const int ranks : {2, 3, 4}) {
        run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
            const Stream stream;
            LadderCheck check(rank.rank(), rank.size());
            Ladder ladder(rank, row, most);
            for (const std::size_t count : counts) {
                const Buffers buffers = ladder.buffers();
                Verifier::poison(stream, buffers.out, most * sizeof(float));
                check.prepare(stream, buffers, count);
                ladder.call(count, stream);
                ladder.synchronize(stream, "the call");
                check.check(stream, buffers, count);
                float next = NAN;
                copy_to_host(&next, buffers.out + count % most * sizeof(float), sizeof(next));
                EXPECT_TRUE(count == most || std::isnan(next))
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
