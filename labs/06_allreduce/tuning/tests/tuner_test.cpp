#include "labs/06_allreduce/tuning/tuner.hpp"

#include <gtest/gtest.h>

#include "common/cuda/driver.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

constexpr bool kInWindows = true;
constexpr MostShapes kMostShapes{{128, 512}, {264, 512}, true, true};

// These tests use this table, on emulated and on real GPUs.
Tuner tuner(const MostShapes& most = kMostShapes, const TunerOverrides& overrides = {}) {
    return {TuningTable::parse("ranks calls oneshot sentinel push twoshot chunks\n"
                               "2 floating 16K 8M - 16M 96M\n"
                               "2 integer 512K - - 16M 96M\n"
                               "8 floating 16K 160K 4M - all\n",
                               "the test"),
            2, most, overrides};
}

struct CallSize {
    DataType type;
    std::size_t count;
    int ranks;
    bool in_windows;
    Collective collective = Collective::kAllReduce;
};

CallPlan plan(const CallSize& size, Algorithm asked = Algorithm::kAuto, Tuner by = tuner()) {
    by.ranks = size.ranks;
    return by.plan({{size.type, ReduceOp::kSum, size.collective}, 0, 0, size.count},
                   size.in_windows, asked);
}

bool may_take_chunks(std::size_t bytes, const Tuner& by) {
    return by.may_take(*find_row(Collective::kAllReduce, Algorithm::kChunks), bytes);
}

Algorithm chosen(std::size_t bytes, int ranks, DataType type = DataType::kFloat) {
    return plan({type, bytes / size_of(type), ranks, kInWindows}).algorithm;
}

TEST(Tuner, FollowsItsTable) {
    EXPECT_EQ(chosen(16 << 10, 2), Algorithm::kOneShot);
    EXPECT_EQ(chosen((16 << 10) + 4, 2), Algorithm::kSentinel);
    EXPECT_EQ(chosen(8 << 20, 1), Algorithm::kSentinel);
    EXPECT_EQ(chosen((8 << 20) + 4, 2), Algorithm::kTwoShot);
    EXPECT_EQ(chosen((16 << 20) + 4, 2), Algorithm::kChunks);
    EXPECT_EQ(chosen((96 << 20) + 4, 2), Algorithm::kCopy);
    EXPECT_EQ(chosen(160 << 10, 3), Algorithm::kSentinel);
    EXPECT_EQ(chosen((160 << 10) + 4, 8), Algorithm::kPush);
    EXPECT_EQ(chosen((4 << 20) + 4, 8), Algorithm::kChunks);
    EXPECT_EQ(chosen(std::size_t{1} << 33, 8), Algorithm::kChunks);
    EXPECT_EQ(chosen(512 << 10, 2, DataType::kInt8), Algorithm::kOneShot);
    EXPECT_EQ(chosen((512 << 10) + 1, 8, DataType::kInt8), Algorithm::kTwoShot);
}

TEST(TuningTable, IsReadAndWritten) {
    const TuningTable table = tuner().table;
    EXPECT_EQ(TuningTable::parse(table.text(), "").text(), table.text());
    EXPECT_EQ(table.row(3, CallKind::kFloating).limit(Algorithm::kSentinel), 160U << 10);
    EXPECT_EQ(table.row(100, CallKind::kFloating).ranks, 8);
    EXPECT_EQ(table.row(100, CallKind::kInteger).ranks, 2);
    EXPECT_EQ(table.row(2, CallKind::kAllGather).limit(Algorithm::kSentinel), 0U);
}

TEST(TuningTable, SaysWhatIsWrong) {
    const auto told = [](const std::string& text) {
        return testing::text_thrown_by([&] { TuningTable::parse(text, "a file"); });
    };
    const auto row = [&](const std::string& text) {
        return told("ranks calls oneshot sentinel push twoshot chunks\n" + text);
    };
    EXPECT_EQ(told("# nothing"), "a file: no row for floating types");
    EXPECT_EQ(told("2 floating 1K 1M - 1G 1G"),
              "a file, line 1: the first row names the columns: ranks calls, then algorithms");
    EXPECT_NE(told("ranks calls ring"), "");
    EXPECT_EQ(told("ranks calls auto"), "a file, line 1: there is no column `auto`");
    EXPECT_EQ(told("ranks calls copy"), "a file, line 1: there is no column `copy`");
    EXPECT_EQ(row("\n2 float 1K 1M - 1G 1G"),
              "a file, line 3: a row starts with the number of ranks, then floating, integer, "
              "reducescatter, allgather, broadcast, reduce");
    EXPECT_EQ(row("2 integer 1K 1M - 1G 1G"),
              "a file, line 2: sentinel has no integer calls: write `-`");
    EXPECT_EQ(row("2 integer 1K - - 1G 1G 2G"), "a file, line 2: there is no column for `2G`");
    EXPECT_NE(row("2 floating 1K soon - 1G 1G"), "");
    EXPECT_NE(row("2 floating 1K"), "");
}

TEST(TuningTable, TakesNoAlgorithmWithoutAColumn) {
    const TuningTable table = TuningTable::parse(
        "ranks calls chunks oneshot\n2 floating 1M 4K\n2 integer 1M 4K", "the test");
    const TuningRow& row = table.row(2, CallKind::kFloating);
    EXPECT_EQ(row.algorithm(4 << 10), Algorithm::kOneShot);
    EXPECT_EQ(row.algorithm(5 << 10), Algorithm::kChunks);
    EXPECT_EQ(row.limit(Algorithm::kTwoShot), 0U);
    EXPECT_EQ(row.algorithm(2 << 20), Algorithm::kCopy);
}

TEST(Tuner, TakesOneShotWithoutAColumnWhereNothingElseCanMakeTheCall) {
    Tuner by = tuner();
    by.table = TuningTable::parse("ranks calls twoshot\n2 floating all\n2 integer all", "the test");
    EXPECT_EQ(plan({DataType::kFloat, 100, 2, kInWindows}, Algorithm::kAuto, by).algorithm,
              Algorithm::kTwoShot);
    EXPECT_EQ(plan({DataType::kFloat, 100, 2, !kInWindows}, Algorithm::kAuto, by).algorithm,
              Algorithm::kOneShot);
}

TEST(Tuner, FillsNoMoreThanTheDevice) {
    constexpr LaunchShape kFew{7, 96};
    for (const std::size_t count : {1UL, 31UL, 4097UL, 1UL << 15, 1UL << 16, 1UL << 28}) {
        const CallPlan few = plan({DataType::kBfloat16, count, 8, kInWindows}, Algorithm::kAuto,
                                  tuner({kFew, kFew, true}));
        EXPECT_GE(few.shape.blocks, 1U);
        EXPECT_LE(few.shape.blocks, 7U);
        EXPECT_LE(few.shape.threads, 96U);
        EXPECT_EQ(few.shape.threads % 32, 0U);
    }
}

// On GPUs, with few blocks the sentinel and push are fast only for small calls; chunks are slow.
TEST(Tuner, TakesTwoShotsWhereOthersHaveTooFewBlocks) {
    constexpr MostShapes kFew{{16, 512}, {16, 512}, true, false};
    const auto with_few = [&](std::size_t bytes, bool in_windows, int ranks = 2) {
        return plan({DataType::kFloat, bytes / 4, ranks, in_windows}, Algorithm::kAuto, tuner(kFew))
            .algorithm;
    };
    EXPECT_EQ(with_few(1 << 20, kInWindows), Algorithm::kSentinel);
    EXPECT_EQ(with_few((1 << 20) + 4, kInWindows),
              is_emulated() ? Algorithm::kSentinel : Algorithm::kTwoShot);
    EXPECT_EQ(with_few((1 << 20) + 4, !kInWindows), Algorithm::kSentinel);
    EXPECT_EQ(with_few(2 << 20, kInWindows, 4), Algorithm::kPush);
    EXPECT_EQ(with_few((2 << 20) + 8, kInWindows, 4),
              is_emulated() ? Algorithm::kPush : Algorithm::kTwoShot);
    EXPECT_EQ(with_few(32 << 20, kInWindows),
              is_emulated() ? Algorithm::kChunks : Algorithm::kTwoShot);
}

TEST(Tuner, SaysWhetherScratchMemoryIsNeeded) {
    constexpr std::size_t kSmall = 16 << 20;
    EXPECT_FALSE(may_take_chunks(kSmall, tuner()));
    EXPECT_TRUE(may_take_chunks(kSmall + 4, tuner()));
    EXPECT_TRUE(may_take_chunks(kSmall, tuner(kMostShapes, {Algorithm::kChunks})));
    MostShapes shared = kMostShapes;
    shared.own_devices = false;
    EXPECT_FALSE(may_take_chunks(std::size_t{1} << 33, tuner(shared)));
    constexpr MostShapes kFew{{16, 512}, {16, 512}, true, false};
    EXPECT_EQ(may_take_chunks(kSmall + 4, tuner(kFew)), is_emulated());
    const AlgorithmRow& gather = *find_row(Collective::kAllGather, Algorithm::kCopy);
    EXPECT_FALSE(tuner().may_take(gather, 1 << 20));
    EXPECT_TRUE(tuner().may_take(gather, std::size_t{1} << 30));
}

TEST(Tuner, SaysAboveWhichSizeItChose) {
    const auto said = [](std::size_t bytes, int ranks) {
        return describe(plan({DataType::kFloat, bytes / 4, ranks, kInWindows}), ranks);
    };
    EXPECT_EQ(said(32 << 20, 2), "above 16M: stores cross a link faster than loads");
    EXPECT_EQ(said(32 << 20, 8), "above 4M: stores cross a link faster than loads");
    EXPECT_EQ(said(128 << 20, 2), "above 96M: the copy engine moves more bytes per second");
    EXPECT_EQ(said(4 << 20, 8), "above 160K: one shot would send 4 times as many bytes");
}

TEST(Tuner, SaysWhatCannotBeDone) {
    EXPECT_THROW(plan({DataType::kFloat, 10, 2, !kInWindows}, Algorithm::kTwoShot),
                 std::invalid_argument);
    EXPECT_THROW(plan({DataType::kInt32, 10, 2, kInWindows}, Algorithm::kSentinel),
                 std::invalid_argument);
    EXPECT_THROW(plan({DataType::kInt32, 10, 3, !kInWindows}, Algorithm::kPush),
                 std::invalid_argument);
    MostShapes shared = kMostShapes;
    shared.own_devices = false;
    EXPECT_THROW(plan({DataType::kFloat, 10, 2, kInWindows}, Algorithm::kCopy, tuner(shared)),
                 std::invalid_argument);
    const CallSize largest{DataType::kFloat, std::size_t{100} << 20, 2, kInWindows};
    EXPECT_EQ(plan(largest).algorithm, Algorithm::kCopy);
    EXPECT_EQ(plan(largest, Algorithm::kAuto, tuner(shared)).algorithm, Algorithm::kTwoShot);
}

// Chunks and the copy engine can write to scratch memory only.
TEST(Tuner, TakesLargeCallsFromAnyMemory) {
    MostShapes shared = kMostShapes;
    shared.own_devices = false;
    const CallSize elsewhere{DataType::kFloat, std::size_t{100} << 20, 2, !kInWindows};
    EXPECT_EQ(plan(elsewhere).algorithm, Algorithm::kCopy);
    EXPECT_EQ(plan(elsewhere, Algorithm::kAuto, tuner(shared)).algorithm, Algorithm::kSentinel);
    // For which the table has two shots in windows.
    for (const auto& [ranks, above] : {std::pair{2, 128}, {4, 64}, {8, 128}}) {
        const std::size_t count = static_cast<std::size_t>(above) << 18;
        const CallPlan less = plan({DataType::kFloat, count, ranks, !kInWindows});
        EXPECT_EQ(less.algorithm, ranks == 2 ? Algorithm::kCopy : Algorithm::kChunks);
        const CallPlan more = plan({DataType::kFloat, count + 1, ranks, !kInWindows});
        EXPECT_EQ(more.algorithm, Algorithm::kCopy);
    }
    const CallPlan chunks = plan({DataType::kInt32, (1 << 18) + 1, 8, !kInWindows});
    EXPECT_EQ(chunks.algorithm, Algorithm::kChunks);
    EXPECT_EQ(describe(chunks, 8),
              "a buffer is not in a window: a large call goes through peer slots");
    EXPECT_EQ(plan({DataType::kInt32, 1 << 18, 8, !kInWindows}).algorithm, Algorithm::kOneShot);
    for (const Collective half : {Collective::kReduceScatter, Collective::kAllGather}) {
        for (const bool in_windows : {true, false}) {
            const CallSize part{DataType::kFloat, std::size_t{80} << 20, 2, in_windows, half};
            EXPECT_EQ(plan(part).algorithm, Algorithm::kCopy);
            EXPECT_NE(plan(part, Algorithm::kAuto, tuner(shared)).algorithm, Algorithm::kCopy);
        }
    }
}

// Scratch memory holds one piece.
TEST(Tuner, CutsWhatScratchMemoryDoesNotHoldIntoPieces) {
    MostShapes shared = kMostShapes;
    shared.own_devices = false;
    const auto outside = [&](DataType type, std::size_t count, Algorithm asked = Algorithm::kAuto,
                             int ranks = 2) {
        return plan({type, count, ranks, !kInWindows}, asked, tuner(shared));
    };
    const CallPlan floats = outside(DataType::kFloat, 8 << 20, Algorithm::kAuto, 8);
    EXPECT_EQ(floats.algorithm, Algorithm::kPush);
    EXPECT_EQ(describe(floats, 8), "a buffer is not in a window: it goes through scratch memory");
    EXPECT_EQ(floats.piece, push_limit(8) / 4);
    const CallPlan bytes = outside(DataType::kUint8, 8 << 20);
    EXPECT_EQ(bytes.algorithm, Algorithm::kOneShot);
    EXPECT_EQ(bytes.piece, kOneShotLimit);
    EXPECT_EQ(outside(DataType::kFloat, 7, Algorithm::kOneShot).piece, 7U);
    const CallPlan pushed = outside(DataType::kFloat, push_limit(2), Algorithm::kPush);
    EXPECT_EQ(pushed.piece, push_limit(2) / 4);
    EXPECT_EQ(outside(DataType::kDouble, 7, Algorithm::kPush).piece, 7U);
    const std::size_t slots = find_row(Collective::kAllReduce, Algorithm::kChunks)->cost.at_once(2);
    const CallSize chunks{DataType::kFloat, slots, 2, kInWindows};
    EXPECT_EQ(plan(chunks, Algorithm::kChunks).piece, slots / 4);
}

TEST(Tuner, IsOverruled) {
    TunerOverrides overrides{Algorithm::kTwoShot, 1000, 70};
    const CallSize small{DataType::kFloat, 100, 2, kInWindows};
    const CallPlan overruled = plan(small, Algorithm::kAuto, tuner(kMostShapes, overrides));
    EXPECT_EQ(overruled.algorithm, Algorithm::kTwoShot);
    EXPECT_EQ(overruled.shape.blocks, 128U);
    EXPECT_EQ(overruled.shape.threads, 64U);
    EXPECT_EQ(plan(small, Algorithm::kSentinel, tuner(kMostShapes, overrides)).algorithm,
              Algorithm::kSentinel);
}

}  // namespace
}  // namespace symm
