#pragma once
/// \file
/// What a rank that gave up tells its peers, of algorithms whose peers could use wrong data then.

#include <chrono>
#include <cstdint>
#include <string>

#include "common/tests/text_thrown_by.hpp"
#include "labs/06_allreduce/algorithms/tests/protocol_kernels.hpp"

namespace symm::testing {

/// The error of a call of `side`; empty if there is none.
template <class Side>
std::string error_of_call(Side& side) {
    return text_thrown_by([&] {
        side.queue(ProtocolMemory::kElements);
        side.synchronize();
    });
}

/// Rank 0 calls alone, and gives up. `side.gave_up(p)` is where peer p says so.
template <class Side>
void expect_peers_are_told(int ranks) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, std::chrono::milliseconds{300});
        if (rank.rank() == 0) {
            EXPECT_NE(error_of_call(side), "");
        }
        rank.bootstrap().barrier("gave up");
        if (rank.rank() == 1) {
            std::uint32_t told = 0;
            copy_to_host(&told, side.gave_up(0), sizeof(told));
            EXPECT_NE(told, 0U) << "rank 1 was not notified";
        }
        rank.bootstrap().barrier("done");
    });
}

/// All ranks call, and rank 1 has been told that rank 0 gave up.
template <class Side>
void expect_no_trust_beside_a_rank_that_gave_up(int ranks) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, Deadline::standard_limit());
        if (rank.rank() == 1) {
            constexpr std::uint32_t kGaveUp = 1;
            copy_to_device(side.gave_up(0), &kGaveUp, sizeof(kGaveUp));
        }
        const std::string error = error_of_call(side);
        if (rank.rank() == 1) {
            EXPECT_NE(error.find("rank 0 gave up"), std::string::npos)
                << "the call did not fail: " << error;
        } else {
            EXPECT_EQ(error, "");
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace symm::testing
