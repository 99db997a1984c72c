// The program 04_shm_transport: its output, its exit codes, what it leaves behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "common/cuda/driver.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/running.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string says;  // in the output of a success, else in the errors
};

std::vector<std::string> program(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{binary_directory() + "/04_shm_transport"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

class Program : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Usage, Program,
    ::testing::Values(
        Case{{}, 0, "All checks passed."},
        Case{{"--ranks", "3", "--mode", "thread"}, 0, "All checks passed."},
        Case{{"--ranks", "1", "--bytes", "4"}, 0, "All checks passed."},
        Case{{"--ranks", "4", "--path", "posix", "--bytes", "100004"}, 0, "share: POSIX"},
        Case{{"--mode", "thread", "--path", "cumem", "--slot", "1K", "--channels", "1"},
             0,
             "in 1024 step(s) of 1K"},
        Case{{"--mode", "thread", "--proxy", "both", "--locality", "sender"},
             0,
             "Slots: near the sender; copy engine: both"},
        Case{{"--proxy", "sender", "--slot", "0"}, 0, "copy engine: sender"},
        Case{{"--proxy", "everybody"}, 2, "none, sender, receiver, both"},
        Case{{"--locality", "moon"}, 2, "one of sender, receiver"}, Case{{"--help"}, 0, "--path"},
        Case{{"--ranks", "0"}, 2, "1 to 64"}, Case{{"--bytes", "0"}, 2, "--bytes 1M"},
        Case{{"--bytes", "5"}, 2, "multiple of 4"}, Case{{"--bytes", "4096G"}, 2, "is more than"},
        Case{{"--iters", "0"}, 2, "--iters"},
        Case{{"--path", "carrier-pigeon"}, 2, "auto, cumem, posix"},
        Case{{"--slot", "100"}, 2, "multiple of 128"}, Case{{"--silent", "2"}, 2, "not a rank"},
        Case{{"--teleport"}, 2, "--teleport"}));

TEST_P(Program, ExitsAsItShouldAndLeavesNothing) {
    Running running(program(GetParam().arguments));
    EXPECT_EQ(running.end().code, GetParam().exit_code) << running.output() << running.errors();
    const std::string errors = running.errors();
    if (GetParam().exit_code == 0) {
        EXPECT_THAT(running.output(), HasSubstr(GetParam().says));
        EXPECT_THAT(errors, IsEmpty());
    } else {
        EXPECT_THAT(errors, HasSubstr(GetParam().says));
        EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    }
    EXPECT_THAT(running.left(), IsEmpty());
}

TEST(Program, NamesARankThatSendsNothing) {
    // Two ranks and a message that fits into the slots: only one wait can be in vain.
    for (const char* mode : {"process", "thread"}) {
        Running running(program({"--bytes", "1K", "--silent", "0", "--mode", mode}),
                        {"SYMM_TIMEOUT=0.5"});
        EXPECT_EQ(running.end().code, 1) << running.output();
        EXPECT_THAT(running.errors(),
                    HasSubstr("rank 1 waited 0.5 s in a kernel for a filled FIFO slot from rank 0: "
                              "expected 1, saw 0"));
        EXPECT_THAT(running.left(), IsEmpty());
    }
}

TEST(Program, LeavesNothingWhenItIsInterrupted) {
    for (const char* mode : {"process", "thread"}) {
        Running running(program({"--silent", "0", "--mode", mode}), {"SYMM_TIMEOUT=60"});
        const Deadline deadline = Deadline::after(std::chrono::seconds(60));
        while (running.output().find("3. A ring") == std::string::npos) {
            ASSERT_FALSE(deadline.passed()) << running.errors();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        running.process.signal(SIGINT);
        EXPECT_EQ(running.end().signal, SIGINT);
        EXPECT_THAT(running.left(), IsEmpty());
    }
}

TEST(Program, SaysWhyItFallsBackToPosix) {
    Running told(program({}), {"SYMM_CUMEM_HOST_ENABLE=0"});
    EXPECT_EQ(told.end().code, 0) << told.errors();
    EXPECT_THAT(told.output(), HasSubstr("share: POSIX"));
    EXPECT_THAT(told.output(), HasSubstr("not cuMem: rank 0: SYMM_CUMEM_HOST_ENABLE=0"));
    if (!is_emulated()) {
        return;
    }
    Running refused(program({}),
                    {"SYMM_EMU_FAIL=cuMemExportToShareableHandle:1:CUDA_ERROR_NOT_PERMITTED"});
    EXPECT_EQ(refused.end().code, 0) << refused.errors();
    EXPECT_THAT(refused.output(), HasSubstr("not cuMem: rank 0: cuMemExportToShareableHandle("));
}

// A driver that fails is no reason to take the other path.
TEST(Program, FailsWhereTheProbeFails) {
    if (!is_emulated()) {
        GTEST_SKIP() << "only the emulated driver fails on demand";
    }
    for (const char* mode : {"process", "thread"}) {
        Running program_fails(program({"--mode", mode}),
                              {"SYMM_EMU_FAIL=cuMemSetAccess:3:CUDA_ERROR_UNKNOWN"});
        EXPECT_EQ(program_fails.end().code, 1) << program_fails.output();
        EXPECT_THAT(program_fails.errors(),
                    AllOf(HasSubstr("cuMemSetAccess"), HasSubstr("CUDA_ERROR_UNKNOWN")));
    }
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command :
         {"04_shm_transport --mode thread", "04_shm_transport --mode process"}) {
        expect_failure_without_stdout(command);
    }
}

}  // namespace
}  // namespace symm
