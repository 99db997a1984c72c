#include "labs/05_device_prims/latency_meter.hpp"

#include <gtest/gtest.h>

#include "common/ranks/ranks.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

class LatencyMeters : public ::testing::TestWithParam<int> {};

// The meter throws if a ball is lost, or if a barrier does not show what all wrote.
TEST_P(LatencyMeters, SeeEveryRoundRight) {
    run_ranks({GetParam(), RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank);
        for (const Carrier carrier : {Carrier::kSignal, Carrier::kRelaxed, Carrier::kPacket}) {
            if (rank.size() > 1) {  // from rank 2 on, they look on
                meter.ping_pong(carrier, 50);
            }
            meter.barriers(20, 1, 16);
            meter.barriers(7, 2, 5);   // more blocks: their epochs start later
            meter.barriers(20, 1, 1);  // fewer threads than ranks
        }
    });
}

INSTANTIATE_TEST_SUITE_P(OfRanks, LatencyMeters, ::testing::Values(1, 2, 3, 5, 8));

// One rank stays away: the other's kernel has to end, and name the missing rank.
TEST(LatencyMeter, NamesThePeerThatNeverAnswers) {
    std::string told;
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank, std::chrono::milliseconds{300});
        if (rank.rank() == 0) {
            told = testing::text_thrown_by([&] { meter.ping_pong(Carrier::kSignal, 3); });
        } else {  // it learns of the failure, as a rank that only watches does
            EXPECT_THROW(rank.bootstrap().together("ping-pong", [] {}), std::runtime_error);
        }
    });
    EXPECT_NE(
        told.find("rank 0 waited 0.3 s in a kernel for a signal from rank 1: expected 1, saw 0"),
        std::string::npos)
        << told;
}

TEST(LatencyMeter, RefusesMoreBlocksThanItHasFlagsFor) {
    run_ranks({1, RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank);
        EXPECT_THROW(meter.barriers(1, kMaxBarrierBlocks + 1, 1), std::invalid_argument);
        EXPECT_THROW(meter.ping_pong(Carrier::kSignal, 1), std::invalid_argument);
    });
}

}  // namespace
}  // namespace symm
