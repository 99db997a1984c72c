// The pace of turns, which no result and no scene shows: a turn that begins too early is only
// slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "labs/06_allreduce/algorithms/turns/turns.hpp"

namespace symm {
namespace {

struct LoneBlock final : simt::HostBlock {
    bool sync(bool vote) override { return vote; }
    void sync_warp(unsigned) override {}
    void sync_named(unsigned, unsigned) override {}
};

struct OfBlock {
    int rank;
    int turn;
    Turns turns;
};

class TurnsTest : public ::testing::TestWithParam<std::tuple<int, unsigned, int>> {
protected:
    void SetUp() override { block_.grid_dim.x = blocks_; }

    std::vector<OfBlock> call(bool paced) {
        std::vector<OfBlock> all;
        for (int rank = 0; rank < ranks_; ++rank) {
            for (unsigned i = 0; i < blocks_; ++i) {
                all.push_back(
                    {rank, 0,
                     Turns(simt::ThreadBlock(&block_, 0), {memory_.data(), sizeof(TurnsMemory)},
                           rank, ranks_, turns_, paced)});
            }
        }
        return all;
    }

    bool may_begin(const OfBlock& of) const {
        return !of.turns.waits() || memory_[static_cast<std::size_t>(of.rank)].begin[of.turn] == 1;
    }

    bool all_is_zero() const {
        return std::ranges::all_of(memory_, [](const TurnsMemory& memory) {
            const auto is_zero = [](std::uint32_t word) { return word == 0; };
            return std::ranges::all_of(memory.begin, is_zero) &&
                   std::ranges::all_of(memory.ended, is_zero);
        });
    }

    const int ranks_ = std::get<0>(GetParam());
    const unsigned blocks_ = std::get<1>(GetParam());
    const int turns_ = std::get<2>(GetParam()) * (ranks_ - 1);
    LoneBlock block_;
    std::vector<TurnsMemory> memory_ =
        std::vector<TurnsMemory>(static_cast<std::size_t>(ranks_), TurnsMemory{});
};

TEST_P(TurnsTest, EachRankSendsToEachPeerAndToNobodyWhoReceives) {
    std::vector<Turns> of;
    for (int rank = 0; rank < ranks_; ++rank) {
        of.emplace_back(simt::ThreadBlock(&block_, 0),
                        SymmetricPointer<TurnsMemory>{memory_.data(), sizeof(TurnsMemory)}, rank,
                        ranks_, turns_, true);
    }
    std::multiset<std::pair<int, int>> sent;
    for (int turn = 0; turn < turns_; ++turn) {
        std::set<int> receivers;
        for (int rank = 0; rank < ranks_; ++rank) {
            Turns& turns = of[static_cast<std::size_t>(rank)];
            receivers.insert(turns.peer());
            sent.emplace(rank, turns.peer());
            turns.next();
        }
        EXPECT_EQ(receivers.size(), static_cast<std::size_t>(ranks_)) << "turn " << turn;
    }
    for (int from = 0; from < ranks_; ++from) {
        for (int to = 0; to < ranks_; ++to) {
            EXPECT_EQ(sent.count({from, to}), from == to ? 0U : std::get<2>(GetParam()))
                << from << " to " << to;
        }
    }
}

// Blocks go on in any order, in two calls that share the memory.
TEST_P(TurnsTest, ATurnBeginsWhenTheSenderBeforeHasAllButEnded) {
    std::minstd_rand random(7);
    for (int n = 0; n < 2; ++n) {
        std::vector<OfBlock> left = call(true);
        // [turn][receiver]: how many blocks have ended that turn to it.
        std::vector<std::vector<unsigned>> ended(
            static_cast<std::size_t>(turns_),
            std::vector<unsigned>(static_cast<std::size_t>(ranks_)));
        while (!left.empty()) {
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < left.size(); ++i) {
                if (may_begin(left[i])) {
                    ready.push_back(i);
                }
            }
            ASSERT_FALSE(ready.empty()) << "nobody may go on";
            const std::size_t chosen = ready[random() % ready.size()];
            OfBlock& of = left[chosen];
            const auto receiver = static_cast<std::size_t>(of.turns.peer());
            const auto turn = static_cast<std::size_t>(of.turn);
            if (turn > 0 && ranks_ > 2) {
                ASSERT_GE(5 * ended[turn - 1][receiver], 4 * blocks_)
                    << "rank " << of.rank << " begins turn " << turn << " to " << receiver;
            }
            of.turns.end();
            ++ended[turn][receiver];
            of.turns.next();
            if (++of.turn == turns_) {
                left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
            }
        }
        EXPECT_TRUE(all_is_zero()) << "call " << n;
    }
}

TEST_P(TurnsTest, NobodyWaitsUnlessPaced) {
    for (OfBlock& of : call(false)) {
        for (int turn = 0; turn < turns_; ++turn) {
            EXPECT_FALSE(of.turns.waits());
            of.turns.end();
            of.turns.next();
        }
    }
    EXPECT_TRUE(all_is_zero());
}

// {ranks, blocks, trips}
INSTANTIATE_TEST_SUITE_P(Calls, TurnsTest,
                         ::testing::Values(std::tuple{2, 4U, 1}, std::tuple{3, 1U, 2},
                                           std::tuple{4, 5U, 1}, std::tuple{8, 16U, 2}));

}  // namespace
}  // namespace symm
