// Child processes, and the deadlines by which they are waited for.

#include "common/sys/process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "common/sys/creator_process.hpp"
#include "common/sys/number.hpp"
#include "common/sys/usage_error.hpp"
#include "common/tests/forked.hpp"
#include "common/tests/patient.hpp"
#include "common/tests/temporary_directory.hpp"
#include "common/tests/variable_in_force.hpp"

namespace symm {
namespace {

using testing::patient;

Command shell(const std::string& script) {
    return {.arguments = {"/bin/sh", "-c", script}};
}

std::string output_of(Command command, const std::filesystem::path& file) {
    const UniqueFd out(::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    command.standard_output = out.get();
    Process process(command);
    EXPECT_TRUE(process.wait(patient())->success());
    std::ifstream text(file);
    return {std::istreambuf_iterator<char>(text), {}};
}

TEST(Process, TellsHowItEnded) {
    EXPECT_TRUE(Process(shell("exit 0")).wait(patient())->success());
    const ExitStatus code = *Process(shell("exit 7")).wait(patient());
    EXPECT_EQ(code.code, 7);
    EXPECT_EQ(code.describe(), "exited with code 7");
    const ExitStatus signal = *Process(shell("kill -9 $$")).wait(patient());
    EXPECT_EQ(signal.signal, SIGKILL);
    EXPECT_FALSE(signal.success());
    EXPECT_EQ(signal.describe(), "was killed by signal 9 (Killed)");
}

TEST(Process, TellsHowItEndedWhereSigchldIsIgnored) {
    struct sigaction before {};
    for (const int flags : {0, SA_NOCLDWAIT}) {
        struct sigaction ignored {};
        ignored.sa_handler = flags == 0 ? SIG_IGN : SIG_DFL;
        ignored.sa_flags = flags;
        ::sigaction(SIGCHLD, &ignored, flags == 0 ? &before : nullptr);
        EXPECT_EQ(Process(shell("exit 7")).wait(patient())->code, 7);
    }
    ::sigaction(SIGCHLD, &before, nullptr);
}

TEST(Process, IsWaitedForAgainAndAgain) {
    Process process(shell("exec sleep 1000"));
    EXPECT_FALSE(process.wait(Deadline::after(std::chrono::milliseconds(20))));
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(patient())->signal, SIGTERM);
    EXPECT_EQ(process.wait(patient())->signal, SIGTERM);
    process.signal(SIGKILL);  // sends nothing: another process may have the number by now
}

TEST(Process, GoesWithItsOwner) {
    pid_t id = 0;
    {
        Process first(shell("exec sleep 1000"));
        id = first.id();
        const Process second = std::move(first);
        EXPECT_EQ(second.id(), id);
        EXPECT_EQ(::kill(id, 0), 0);
    }
    EXPECT_NE(::kill(id, 0), 0);  // killed and reaped
}

TEST(Process, TakesAddedAndReplacedVariables) {
    const TemporaryDirectory directory;
    ::setenv("SYMM_TEST_KEPT", "kept", 1);
    ::setenv("SYMM_TEST_REPLACED", "before", 1);
    Command command = shell("echo $SYMM_TEST_KEPT $SYMM_TEST_REPLACED $SYMM_TEST_NEW");
    command.environment = {"SYMM_TEST_REPLACED=after", "SYMM_TEST_NEW=a b",
                           "SYMM_TEST_REPLACED=later"};
    EXPECT_EQ(output_of(command, directory.path() / "out"), "kept after a b\n");
}

TEST(Process, AProgramThatIsNotThereIsNamed) {
    EXPECT_THAT(
        [] { Process({.arguments = {"/no/such/program"}}); },
        ::testing::ThrowsMessage<std::system_error>(::testing::HasSubstr("/no/such/program")));
}

TEST(Deadline, PassesAndIsNeverNegative) {
    const Deadline past = Deadline::after(std::chrono::nanoseconds(0));
    EXPECT_TRUE(past.passed());
    EXPECT_EQ(past.left().count(), 0);
    EXPECT_EQ(past.left_ms(), 0);
    EXPECT_EQ(Deadline::after(std::chrono::nanoseconds::min()).left().count(), 0);
    const Deadline far = Deadline::after(std::chrono::hours(1));
    EXPECT_FALSE(far.passed());
    EXPECT_GT(far.left_ms(), 3'000'000);
    EXPECT_DOUBLE_EQ(far.seconds(), 3600);
    const Deadline farthest = Deadline::after(std::chrono::nanoseconds::max());
    EXPECT_GT(farthest.left(), std::chrono::hours(24 * 365));
    EXPECT_GT(farthest.left_ms(), 0);
}

TEST(Deadline, IsWhatTheEnvironmentSays) {
    {
        const VariableInForce timeout("SYMM_TIMEOUT", "2.5");
        EXPECT_EQ(Deadline::standard_limit(), std::chrono::milliseconds(2500));
    }
    for (const auto& unset : {std::optional<std::string>(), std::optional<std::string>("")}) {
        const VariableInForce timeout("SYMM_TIMEOUT", unset);
        EXPECT_EQ(Deadline::standard_limit(), std::chrono::seconds(30));
    }
    for (const char* text : {"0", "-3", "1e-9", "1e300", "soon", "7 s", " 7", "nan", "inf"}) {
        const VariableInForce timeout("SYMM_TIMEOUT", text);
        EXPECT_THROW(Deadline::standard_limit(), UsageError) << text;
    }
}

TEST(Number, IsDecimalAndWhollyOne) {
    EXPECT_EQ(number_in("010", 0, 99), 10);
    EXPECT_EQ(number_in("-5", -9, 99), -5);
    EXPECT_EQ(number_in("0.5", 0.0, 1.0), 0.5);
    for (const char* text : {"", "x", "0x10", "1 ", "+1", "1.5", "100", "-1", "99999999999"}) {
        EXPECT_FALSE(number_in(text, 0, 99)) << text;
    }
}

TEST(Process, IsNotEndedByAnObjectInAForkedChild) {
    std::optional<Process> process(std::in_place, shell("exec sleep 60"));
    EXPECT_EQ(testing::end_of_child([&] {
                  process->signal(SIGKILL);
                  process.reset();
              }),
              "exited with code 0");
    process->signal(SIGTERM);
    EXPECT_EQ(process->wait(patient())->signal, SIGTERM);
}

// A thread of the parent waits on the condition variable: to destroy it in the child would wait for
// that thread.
TEST(ForkedChild, DestroysNothingThatAThreadOfItsParentUses) {
    struct Waiting {
        std::mutex mutex;
        NotInChild<std::condition_variable_any> changed;
        bool waits = false;
        NotInChild<std::jthread> thread{[this](const std::stop_token& stop) {
            std::unique_lock lock(mutex);
            waits = true;
            changed->wait(lock, stop, [] { return false; });
        }};
    };
    std::optional<Waiting> waiting(std::in_place);
    while (!(std::lock_guard(waiting->mutex), waiting->waits)) {
        std::this_thread::yield();
    }
    EXPECT_EQ(testing::end_of_child([&] { waiting.reset(); }), "exited with code 0");
    const CreatorProcess here;
    EXPECT_TRUE(here.is_this_one());
    EXPECT_EQ(testing::end_of_child([&] {
                  testing::require(!here.is_this_one(), "a child is its parent");
                  testing::require(CreatorProcess().is_this_one(), "a child is not itself");
              }),
              "exited with code 0");
}

}  // namespace
}  // namespace symm
