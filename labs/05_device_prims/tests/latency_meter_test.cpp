#include "labs/05_device_prims/latency_meter.hpp"

#include <gtest/gtest.h>

#include "common/ranks/ranks.hpp"

namespace symm {
namespace {

class Carriers : public ::testing::TestWithParam<Carrier> {};

TEST_P(Carriers, CarryEveryBallOfTwoRanks) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank);
        for (int game = 0; game < 3; ++game) {
            EXPECT_GE(meter.ping_pong(GetParam(), 50), 0);
        }
    });
}

TEST_P(Carriers, LetOtherRanksLookOn) {
    run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank);
        meter.ping_pong(GetParam(), 20);
        meter.barriers(5, 1, 3);
        meter.ping_pong(GetParam(), 20);
    });
}

INSTANTIATE_TEST_SUITE_P(All, Carriers,
                         ::testing::Values(Carrier::kSignal, Carrier::kRelaxed, Carrier::kPacket),
                         [](const auto& info) { return std::string(name_of(info.param)); });

class Barriers : public ::testing::TestWithParam<int> {};

TEST_P(Barriers, ShowEachRankWhatAllWrote) {
    run_ranks({GetParam(), RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank);
        meter.barriers(20, 1, 16);
        meter.barriers(7, 2, 5);   // more blocks: their epochs start later
        meter.barriers(20, 1, 1);  // fewer threads than ranks
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Barriers, ::testing::Values(1, 2, 3, 5, 8));

// One rank stays away: the other's kernel has to end, and name the missing rank.
TEST(LatencyMeter, NamesThePeerThatNeverAnswers) {
    std::string told;
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        LatencyMeter meter(rank, std::chrono::milliseconds{300});
        if (rank.rank() == 0) {
            try {
                meter.ping_pong(Carrier::kSignal, 3);
            } catch (const std::runtime_error& error) {
                told = error.what();
            }
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
