// A directory of our own, and what is left of it when a signal ends the process.

#include "common/sys/directory.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "common/sys/remove_on_signal.hpp"

namespace symm {
namespace {

void open_file_in(const PrivateDirectory& directory) {
    std::ofstream(directory.path() / "hub") << "here";
}

// The threaded style starts this program anew, where nothing has handled a signal yet.
class PrivateDirectoryDeathTest : public testing::TestWithParam<int> {
protected:
    PrivateDirectoryDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(PrivateDirectoryDeathTest, LeavesNothingWhenASignalEndsTheProcess) {
    // A name that the test's two processes agree on.
    const auto root =
        std::filesystem::temp_directory_path() / ("symm-test-signal-" + std::to_string(GetParam()));
    std::filesystem::create_directory(root);
    EXPECT_EXIT(
        {
            ::setenv("TMPDIR", root.c_str(), 1);
            const PrivateDirectory one("symm-test-");
            PrivateDirectory moved_from("symm-test-");
            const PrivateDirectory two(std::move(moved_from));
            open_file_in(two);
            std::thread([] { ::raise(GetParam()); }).join();
        },
        testing::KilledBySignal(GetParam()), "");
    EXPECT_TRUE(std::filesystem::is_empty(root));
    std::filesystem::remove_all(root);
}

INSTANTIATE_TEST_SUITE_P(Signals, PrivateDirectoryDeathTest,
                         testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE));

TEST(RemoveOnSignal, TakesAFileAndThenItsDirectoryWhereItIsEmpty) {
    for (const bool shared : {false, true}) {
        const PrivateDirectory root("symm-test-");
        const auto directory = root.path() / "d";
        std::filesystem::create_directory(directory);
        std::ofstream(directory / "mine") << 1;
        if (shared) {
            std::ofstream(directory / "another's") << 1;
        }
        EXPECT_EXIT(
            {
                remove_on_signal(directory, OnSignal::kRemoveOne);
                remove_on_signal(directory / "mine", OnSignal::kRemoveOne);
                ::raise(SIGTERM);
            },
            testing::KilledBySignal(SIGTERM), "");
        EXPECT_FALSE(std::filesystem::exists(directory / "mine"));
        EXPECT_EQ(std::filesystem::exists(directory), shared);
    }
}

TEST(PrivateDirectory, LeavesSignalsThatTheProgramIgnoresAlone) {
    const auto before = std::signal(SIGHUP, SIG_IGN);
    std::filesystem::path path;
    {
        const PrivateDirectory directory("symm-test-");
        open_file_in(directory);
        path = directory.path();
        ::raise(SIGHUP);
        EXPECT_TRUE(std::filesystem::exists(path / "hub"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace symm
