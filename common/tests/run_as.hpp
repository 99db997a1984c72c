#pragma once
/// \file
/// Ranks for tests: threads of the test, or processes that are copies of the test's program and run
/// this one test.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>

#include "common/ranks/ranks.hpp"
#include "common/sys/process.hpp"
#include "common/tests/temporary_directory.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
/// How GoogleTest names a mode.
inline void PrintTo(RankMode mode, std::ostream* out) {
    *out << name_of(mode);
}
}  // namespace symm

namespace symm::testing {

/// A rank process whose filter matches no test would exit with 0 without having been a rank. This
/// makes it fail.
class RankProcessRunsOneTest : public ::testing::EmptyTestEventListener {
    void OnTestProgramStart(const ::testing::UnitTest& tests) override {
        if (std::getenv("SYMM_RANK") != nullptr && tests.test_to_run_count() != 1) {
            std::fprintf(stderr, "a rank process must run 1 test, but would run %d\n",
                         tests.test_to_run_count());
            std::exit(1);
        }
    }
};
inline const bool kRunsOneTest = [] {
    ::testing::UnitTest::GetInstance()->listeners().Append(new RankProcessRunsOneTest);
    return true;
}();

/// Options for `ranks` ranks. Rank processes run the current test up to its run_ranks().
inline RankOptions ranks_of_this_test(int ranks, RankMode mode) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    unsetenv("GTEST_TOTAL_SHARDS");  // a copy runs this one test, whichever shard it is in here
    RankOptions options;
    options.ranks = ranks;
    options.mode = mode;
    options.command = {
        own_arguments().at(0), "--gtest_brief=1", "--gtest_also_run_disabled_tests",
        std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name()};
    return options;
}

/// Whether this process is a rank. If so, a test returns after run_ranks(): only the parent checks.
inline bool is_rank_process() {
    return std::getenv("SYMM_RANK") != nullptr;
}

/// For a test that calls run_ranks() in a loop. A rank process calls it in the first turn of the
/// loop, whichever turn its parent is in. The parent passes its `value` in an environment variable.
/// Returns the parent's value in the parent and in the rank process.
inline std::string told_to_ranks(const char* variable, const std::string& value) {
    ::setenv(variable, value.c_str(), is_rank_process() ? 0 : 1);
    return std::getenv(variable);
}

/// A moment in a run that its ranks set, and that the process that started them can ask for.
class Moment {
public:
    using Clock = std::chrono::steady_clock;
    void set() const { std::ofstream(path_) << Clock::now().time_since_epoch().count(); }
    /// How long ago a rank has set it.
    Clock::duration passed() const {
        Clock::rep then = 0;
        EXPECT_TRUE(std::ifstream(path_) >> then) << "no rank has set it";
        return Clock::now().time_since_epoch() - Clock::duration(then);
    }

private:
    // Rank processes end without their destructors: they make no directory that would stay.
    std::optional<TemporaryDirectory> directory_ =
        is_rank_process() ? std::nullopt : std::make_optional<TemporaryDirectory>();
    std::string path_ =
        told_to_ranks("SYMM_TEST_MOMENT", directory_ ? directory_->path() / "moment" : "");
};

/// Runs `body` on every rank and expects that none fails.
inline void run_as(RankMode mode, int ranks, const std::function<void(Rank&)>& body) {
    try {
        EXPECT_EQ(run_ranks(ranks_of_this_test(ranks, mode), body), 0);
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
}

/// The text of what run_ranks() throws; empty where it does not. Empty in a rank process too.
inline std::string error_of(const RankOptions& options, const std::function<void(Rank&)>& body) {
    return text_thrown_by([&] { run_ranks(options, body); });
}

}  // namespace symm::testing
