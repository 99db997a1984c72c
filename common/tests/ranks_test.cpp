// Ranks that are threads: started, told apart, ended.

#include "common/ranks/ranks.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <sstream>

#include "common/ranks/rank_failure.hpp"
#include "common/sys/socket.hpp"
#include "common/sys/usage_error.hpp"
#include "common/tests/forked.hpp"
#include "common/tests/patient.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

RankOptions threads(int ranks) {
    return {ranks, RankMode::kThread, {}, {}};
}

TEST(Ranks, EachRunsTheBodyOnce) {
    for (const int size : {1, 2, 7, kMaxRanks}) {
        std::atomic<std::uint64_t> seen = 0;
        EXPECT_EQ(run_ranks(threads(size),
                            [&](Rank& rank) {
                                EXPECT_EQ(rank.size(), size);
                                EXPECT_TRUE(rank.is_thread());
                                EXPECT_EQ(rank.device(), rank.rank() % device_count());
                                EXPECT_EQ(rank.process_of(0), ::getpid());
                                CUdevice device = -1;
                                ASSERT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
                                EXPECT_EQ(device, rank.gpu().handle());
                                const std::uint64_t bit = std::uint64_t{1} << rank.rank();
                                EXPECT_EQ(seen.fetch_or(bit) & bit, 0u);
                            }),
                  0);
        EXPECT_EQ(seen.load(), ~std::uint64_t{0} >> (64 - size));
    }
}

TEST(Ranks, WithoutABodyAreRefused) {
    EXPECT_THROW(run_ranks(threads(2), {}), std::invalid_argument);
}

TEST(Ranks, NoneAndTooManyAreRefused) {
    for (const int count : {-1, 0, kMaxRanks + 1, 1000}) {
        for (const RankMode mode : {RankMode::kThread, RankMode::kProcess}) {
            EXPECT_THAT(
                [&] {
                    run_ranks({count, mode, {}, {}}, [](Rank&) { FAIL(); });
                },
                ::testing::ThrowsMessage<UsageError>(
                    AllOf(HasSubstr(std::to_string(count)), HasSubstr("1 to 64"))));
        }
    }
}

TEST(Ranks, TheCauseIsToldToAllRanksAndReportedNotItsConsequences) {
    for (const int failing : {0, 1, 3}) {
        const std::string cause = fmt::format("rank {} failed: the GPU has gone fishing", failing);
        std::atomic<int> told = 0;
        const std::string error = error_of(threads(4), [&](Rank& rank) {
            if (rank.rank() == failing) {
                throw std::runtime_error("the GPU has gone fishing");
            }
            told += text_thrown_by([&] { rank.bootstrap().barrier("work"); }) == cause ? 1 : 0;
            rank.bootstrap().barrier("work");  // throws the same again
        });
        EXPECT_EQ(error, cause);
        EXPECT_EQ(told, 3);
    }
}

TEST(Ranks, BadUsageStaysBadUsage) {
    EXPECT_THAT(
        [] {
            run_ranks(threads(3), [](Rank& rank) {
                if (rank.rank() == 1) {
                    throw UsageError("--bytes is too large");
                }
                rank.bootstrap().barrier("work");
            });
        },
        ::testing::ThrowsMessage<UsageError>("--bytes is too large"));
}

TEST(Ranks, LinesAreNeverMixed) {
    constexpr int kSize = 6;
    constexpr int kLines = 60;
    constexpr std::size_t kLong = 2500;  // each text of a rank is longer than PIPE_BUF
    ::testing::internal::CaptureStdout();
    run_as(RankMode::kThread, kSize, [](Rank& rank) {
        rank.headline("headline\nof two lines");
        for (int i = 0; i < kLines; ++i) {
            const std::string text(kLong, static_cast<char>('a' + rank.rank()));
            rank.say("{} {}\nsecond {}\nthird {} {}", i, text, i, i, text);
        }
    });
    std::istringstream output(::testing::internal::GetCapturedStdout());
    std::multiset<std::string> lines;
    for (std::string line; std::getline(output, line);) {
        lines.insert(line);
    }
    EXPECT_EQ(lines.size(), 2u + 3 * kSize * kLines);
    EXPECT_EQ(lines.count("headline"), 1u);
    for (int rank = 0; rank < kSize; ++rank) {
        for (int i = 0; i < kLines; ++i) {
            const std::string text(kLong, static_cast<char>('a' + rank));
            EXPECT_EQ(lines.count(fmt::format("[{}] {} {}", rank, i, text)), 1u);
            EXPECT_EQ(lines.count(fmt::format("[{}] second {}", rank, i)), 1u);
            EXPECT_EQ(lines.count(fmt::format("[{}] third {} {}", rank, i, text)), 1u);
        }
    }
}

TEST(RankFailure, AKilledRankIsTheCauseThenTheFirstOwnError) {
    RankFailure told{0, false, true, false, 1, "told"};
    RankFailure late{1, false, false, false, 9, "late"};
    RankFailure early{2, false, false, false, 5, "early"};
    RankFailure killed{3, false, false, true, 20, "killed"};
    const auto cause = [](const std::vector<RankFailure>& failures) {
        return text_thrown_by([&] { throw_cause(failures); });
    };
    EXPECT_EQ(cause({told, late, early}), "early");
    EXPECT_EQ(cause({told, late, killed, early}), "killed");
    EXPECT_EQ(cause({told}), "told");
}

TEST(RankFailure, TravelsOverASocket) {
    const auto [child, parent] = socket_pair();
    RankFailure found;
    EXPECT_EQ(take_report(parent.get(), found), Heard::kNothing);
    report(child.get(), {});
    EXPECT_EQ(take_report(parent.get(), found), Heard::kItsEnd);
    report(child.get(), RankFailure{5, true, false, false, 123456789012345, "two\nlines"});
    ASSERT_EQ(take_report(parent.get(), found), Heard::kItsFailure);
    EXPECT_TRUE(found.usage);
    EXPECT_FALSE(found.remote);
    EXPECT_EQ(found.when, 123456789012345);
    EXPECT_EQ(found.text, "two\nlines");
    report(child.get(), RankFailure{5, false, true, false, 1, std::string(100'000, 'x')});
    ASSERT_EQ(take_report(parent.get(), found), Heard::kItsFailure);
    EXPECT_TRUE(found.remote);
    EXPECT_GT(found.text.size(), 10'000u);
}

// What the child does with its copy of a bootstrap, the other ranks do not see.
TEST(Ranks, AForkedChildNeitherCallsNorFailsForItsParent) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        Bootstrap& bootstrap = rank.bootstrap();
        bootstrap.barrier("both");
        const auto says_fork = [&](const auto& call) {
            const std::string text = text_thrown_by(call);
            require(text.find("fork()") != std::string::npos, "a call says: " + text);
        };
        for (const int parent : {0, 1}) {
            if (rank.rank() == parent) {
                EXPECT_EQ(end_of_child([&] {
                              says_fork([&] { bootstrap.barrier("of the child"); });
                              says_fork([&] { bootstrap.allgather("of the child", 1); });
                              says_fork([&] { bootstrap.throw_async_error("a kernel"); });
                              says_fork([&] { rank.gpu().make_current(); });
                              bootstrap.fail("on purpose");
                              try {
                                  const Rank copy = std::move(rank);
                                  throw std::logic_error("on purpose");
                              } catch (const std::logic_error&) {
                              }
                          }),
                          "exited with code 0");
            }
            bootstrap.barrier("the child has ended", patient());
            bootstrap.throw_async_error("anything");
        }
    });
}

// It unwinds the rank's thread like an exception, but one that may not be caught.
TEST(Ranks, OneThatEndsItsThreadHasFailed) {
    const std::string error = error_of(threads(3), [](Rank& rank) {
        if (rank.rank() == 1) {
            ::pthread_exit(nullptr);
        }
        EXPECT_THAT(text_thrown_by([&] { rank.bootstrap().barrier("never", patient()); }),
                    HasSubstr("rank 1 failed: it called pthread_exit()"));
    });
    EXPECT_THAT(error, HasSubstr("rank 1 failed: it called pthread_exit()"));
}

}  // namespace
}  // namespace symm
