// Ranks that are processes: copies of this program that run one of these tests.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "common/sys/usage_error.hpp"
#include "common/tests/patient.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/running.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankOptions processes(int ranks) {
    return ranks_of_this_test(ranks, RankMode::kProcess);
}

TEST(RankProcesses, AreProcessesOfTheirOwn) {
    run_as(RankMode::kProcess, 4, [](Rank& rank) {
        EXPECT_EQ(rank.size(), 4);
        EXPECT_FALSE(rank.is_thread());
        const auto all = rank.bootstrap().allgather("pid", ::getpid());
        EXPECT_EQ(std::set<pid_t>(all.begin(), all.end()).size(), 4u);
        for (int peer = 0; peer < 4; ++peer) {
            EXPECT_EQ(rank.process_of(peer), all[static_cast<std::size_t>(peer)]);
        }
    });
}

// The child of a fork() has a copy of every descriptor of the rank.
TEST(RankProcesses, AKilledRankIsNoticedWhileAChildThatItHasForkedLives) {
    const Moment noticed;
    const std::string error = error_of(processes(2), [&](Rank& rank) {
        pid_t child = rank.rank() == 1 ? ::fork() : -1;
        if (child == 0) {
            ::sleep(60);
            ::_exit(0);
        }
        child = rank.bootstrap().allgather("child", child).at(1);
        if (rank.rank() == 1) {
            ::raise(SIGKILL);
        }
        const std::string lost = text_thrown_by(
            [&] { rank.bootstrap().barrier("never", Deadline::after(std::chrono::seconds(10))); });
        ::kill(child, SIGKILL);
        if (lost.find("closed its connection") != std::string::npos) {
            noticed.set();
        }
    });
    if (!is_rank_process()) {
        EXPECT_THAT(error, HasSubstr("killed by signal 9"));
        EXPECT_LT(noticed.passed(), std::chrono::seconds(100));  // it has been set
    }
}

TEST(RankProcesses, ARankKilledInACallIsNoticedWhileOthersAreStillMissing) {
    const std::string error = error_of(processes(3), [](Rank& rank) {
        const pid_t root = rank.process_of(0);
        const pid_t victim = rank.process_of(1);
        if (rank.rank() == 2) {
            ::kill(victim, SIGKILL);
            // Stays out of the call until rank 0 has given it up, without waiting for this rank.
            const Deadline deadline = Deadline::after(std::chrono::seconds(50));
            while (::kill(root, 0) == 0 && !deadline.passed()) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            EXPECT_FALSE(deadline.passed());
            return;
        }
        rank.bootstrap().barrier("call", Deadline::after(std::chrono::seconds(60)));
    });
    if (!is_rank_process()) {
        EXPECT_THAT(error, AllOf(HasSubstr("rank 1 (pid"), HasSubstr("signal 9")));
    }
}

TEST(RankProcesses, ARankKilledBeforeTheyMeetIsNamedAtOnce) {
    for (const char* victim : {"0", "1"}) {
        if (told_to_ranks("SYMM_TEST_VICTIM", victim) ==
            (is_rank_process() ? std::getenv("SYMM_RANK") : "none")) {
            ::raise(SIGKILL);
        }
        const auto start = std::chrono::steady_clock::now();
        const std::string error =
            error_of(processes(3), [](Rank&) { ADD_FAILURE() << "they met without one"; });
        if (is_rank_process()) {
            return;
        }
        EXPECT_THAT(error, AllOf(HasSubstr(fmt::format("rank {} (pid", victim)),
                                 HasSubstr("signal 9 (Killed)")));
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(25));
    }
}

TEST(RankProcesses, ARankThatLeavesBeforeItsEndHasFailed) {
    for (const char* code : {"0", "33"}) {
        const std::string exit_code = told_to_ranks("SYMM_TEST_CODE", code);
        const std::string error = error_of(processes(2), [&](Rank& rank) {
            if (rank.rank() == 1) {
                ::_exit(std::stoi(exit_code));
            }
            if (exit_code != "0") {
                rank.bootstrap().barrier("work");
            }
        });
        if (is_rank_process()) {
            return;
        }
        EXPECT_THAT(error, AllOf(HasSubstr("rank 1 (pid"),
                                 HasSubstr(exit_code == "0" ? "exited with code 0, but had not "
                                                              "finished its work"
                                                            : "")));
    }
}

TEST(RankProcesses, AProcessIsARankOnlyOnce) {
    const auto run = [] { run_ranks(processes(2), [](Rank&) {}); };
    run();
    if (is_rank_process()) {
        EXPECT_THROW(run(), std::logic_error);
    }
}

TEST(RankProcesses, ARankThatDoesNotEndIsKilled) {
    const VariableInForce timeout("SYMM_TIMEOUT", "60");
    const auto start = std::chrono::steady_clock::now();
    const std::string error = error_of(processes(2), [](Rank& rank) {
        rank.bootstrap().barrier("both are here", Deadline::after(std::chrono::seconds(60)));
        if (rank.rank() == 1) {
            throw std::runtime_error("cause");
        }
        while (true) {
            ::pause();
        }
    });
    if (!is_rank_process()) {
        EXPECT_EQ(error, "rank 1 failed: cause");
        // Soon after all others have ended, however long the limit is.
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
    }
}

// SIGSTOP: a rank that exists, closes nothing and answers nothing.
TEST(RankProcesses, StoppedRanksEndTheRunSoonAfterTheTimeout) {
    const VariableInForce timeout("SYMM_TIMEOUT", "3");
    for (const int stopped : {0, 1, -1}) {  // the root, another, all
        const int who = std::stoi(told_to_ranks("SYMM_TEST_STOPPED", std::to_string(stopped)));
        const Moment stop;
        const std::string error = error_of(processes(3), [&](Rank& rank) {
            rank.bootstrap().together("step", [&] {
                stop.set();
                if (who < 0 || rank.rank() == who) {
                    ::raise(SIGSTOP);
                }
            });
        });
        if (is_rank_process()) {
            return;
        }
        EXPECT_THAT(error, stopped < 0 ? HasSubstr("was stopped by a signal")
                                       : HasSubstr(fmt::format("rank {} (pid", stopped)));
        EXPECT_LT(stop.passed(), std::chrono::seconds(13)) << stopped;
    }
}

// Rank 1 is stopped for good. Rank 0, which collects the ranks' reports, is stopped for longer than
// the grace: rank 2 must not blame rank 0.
TEST(RankProcesses, ALateRootIsNotBlamedForAnotherRank) {
    const VariableInForce timeout("SYMM_TIMEOUT", "4");
    const std::string error = error_of(processes(3), [&](Rank& rank) {
        const pid_t root = rank.process_of(0);
        rank.bootstrap().barrier("all there");
        if (rank.rank() == 1) {
            ::raise(SIGSTOP);
        }
        if (rank.rank() == 2) {
            ::kill(root, SIGSTOP);
            std::jthread([root] {
                std::this_thread::sleep_for(std::chrono::seconds(3));
                ::kill(root, SIGCONT);
            }).detach();
        }
        try {
            rank.bootstrap().barrier("call");
            ADD_FAILURE() << "passed a barrier without rank 1";
        } catch (const BootstrapError& late) {
            EXPECT_EQ(late.rank(), 1) << late.what();
        }
    });
    if (!is_rank_process()) {
        EXPECT_THAT(error, HasSubstr("rank 1 (pid"));
    }
}

// Limits that are too low, and how to raise them.
TEST(RankProcesses, AShortageIsNamedWithTheLimitToRaise) {
    for (const char* mode : {"thread", "process"}) {
        Running few({"/bin/sh", "-c",
                     "ulimit -n 40; exec " + binary_directory() +
                         "/03_ipc --driver emulated --ranks 32 --mode " + mode});
        EXPECT_EQ(few.end().code, 1) << few.output();
        EXPECT_THAT(few.errors(), HasSubstr("raise `ulimit -n`"));
    }
}

// Ranks that wait until they are killed, for the test below; alone it does nothing.
TEST(RankProcesses, WaitForTheEndWhereAskedTo) {
    const char* place = std::getenv("SYMM_TEST_PLACE");
    if (place == nullptr) {
        return;
    }
    run_ranks(processes(2), [&](Rank& rank) {
        std::ofstream(std::filesystem::path(place) / fmt::format("draft.{}", rank.rank()))
            << ::getpid();
        rank.bootstrap().barrier("written");
        std::filesystem::rename(std::filesystem::path(place) / fmt::format("draft.{}", rank.rank()),
                                std::filesystem::path(place) / fmt::format("pid.{}", rank.rank()));
        while (true) {
            ::pause();
        }
    });
}

bool runs(pid_t process) {
    const std::string status = text_of(fmt::format("/proc/{}/stat", process));
    const std::size_t name_end = status.rfind(") ");
    // A zombie has ended, and waits for its new parent.
    return name_end != std::string::npos && status[name_end + 2] != 'Z';
}

TEST(RankProcesses, EndWithTheProcessThatStartedThem) {
    for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGKILL}) {
        const TemporaryDirectory place;
        Running parent(
            {own_arguments().at(0), "--gtest_filter=RankProcesses.WaitForTheEndWhereAskedTo"},
            {"SYMM_TEST_PLACE=" + place.path().string()});
        std::vector<pid_t> ranks;
        const Deadline deadline = Deadline::after(std::chrono::seconds(60));
        for (const char* name : {"pid.0", "pid.1"}) {
            while (!std::filesystem::exists(place.path() / name)) {
                ASSERT_FALSE(deadline.passed()) << parent.output() << parent.errors();
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
            ranks.push_back(std::stoi(text_of(place.path() / name)));
            EXPECT_TRUE(runs(ranks.back()));
        }
        parent.process.signal(signal);
        EXPECT_EQ(parent.end().signal, signal);
        for (const pid_t rank : ranks) {
            while (runs(rank)) {
                ASSERT_FALSE(deadline.passed())
                    << "rank process " << rank << " survives signal " << signal;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        }
        EXPECT_THAT(parent.left(), IsEmpty());
    }
}

// A child that returns from the body, or leaves it by an exception, ends as any child does. How its
// parent ends is the parent's to report.
TEST(RankProcesses, AForkedChildThatLeavesTheBodyIsNotTheRank) {
    for (const char* way : {"returns", "throws"}) {
        const std::string how = told_to_ranks("SYMM_TEST_WAY", way);
        const std::string error = error_of(processes(2), [&](Rank& rank) {
            const SymmetricRange range(rank, 1000);
            const pid_t child = rank.rank() == 1 ? ::fork() : -1;
            if (child == 0) {
                ::alarm(60);
                if (how == "throws") {
                    throw std::runtime_error("the child's");
                }
                return;
            }
            if (rank.rank() == 1) {
                int status = 0;
                ::waitpid(child, &status, 0);
                EXPECT_TRUE(WIFEXITED(status)) << status;
            }
            rank.bootstrap().barrier("the child has ended", patient());
            if (rank.rank() == 1 && how == "returns") {
                throw std::runtime_error("the rank's own");
            }
        });
        if (is_rank_process()) {
            return;
        }
        EXPECT_EQ(error, how == "returns" ? "rank 1 failed: the rank's own" : "");
    }
}

TEST(RankProcesses, ARankThatEndsItsThreadHasFailed) {
    const std::string error = error_of(processes(2), [](Rank& rank) {
        const SymmetricRange range(rank, 1000);
        if (rank.rank() == 1) {
            ::pthread_exit(nullptr);
        }
        rank.bootstrap().barrier("never", patient());
    });
    if (!is_rank_process()) {
        EXPECT_THAT(error, HasSubstr("rank 1 failed: it called pthread_exit()"));
    }
}

}  // namespace
}  // namespace symm
