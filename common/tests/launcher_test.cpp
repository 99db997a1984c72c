// This process's rank, as the environment gives it.

#include "common/ranks/launcher_environment.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "common/sys/usage_error.hpp"
#include "common/tests/variable_in_force.hpp"

namespace symm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// All that placement_from_environment() reads.
constexpr const char* kRead =
    "SYMM_BOOTSTRAP SYMM_LAUNCHER RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT "
    "TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE "
    "OMPI_COMM_WORLD_LOCAL_SIZE PMIX_NAMESPACE PMI_RANK PMI_SIZE MPI_LOCALNRANKS SLURM_PROCID "
    "SLURM_STEP_NUM_TASKS SLURM_STEP_NUM_NODES SLURM_JOB_ID SLURM_STEP_ID";

using Variables = std::map<std::string, std::string>;

// Sets these variables for a scope, and unsets all others of kRead.
class Environment {
public:
    explicit Environment(const Variables& variables) {
        std::istringstream names(kRead);
        for (std::string name; names >> name;) {
            const auto given = variables.find(name);
            set_.emplace_back(
                name, given == variables.end() ? std::nullopt : std::optional(given->second));
        }
    }

private:
    std::list<VariableInForce> set_;
};

TEST(Launcher, IsNoneWithoutBothOfItsVariablesOrIfIgnored) {
    for (const Variables& variables :
         {Variables{},
          {{"RANK", "captain"}},
          {{"RANK", ""}, {"WORLD_SIZE", "5"}},
          {{"RANK", "0"}, {"WORLD_SIZE", ""}},
          {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"SYMM_LAUNCHER", "none"}},
          {{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}}) {
        const Environment environment(variables);
        EXPECT_FALSE(placement_from_environment());
    }
}

TEST(Launcher, IsKnownByItsVariables) {
    const std::tuple<const char*, const char*, const char*> launchers[] = {
        {"torchrun", "RANK", "WORLD_SIZE"},
        {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"MPICH", "PMI_RANK", "PMI_SIZE"},
        {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (const auto& [name, rank, size] : launchers) {
        const Environment environment({{rank, "3"}, {size, "5"}, {"MASTER_ADDR", "here"}});
        const auto place = placement_from_environment();
        ASSERT_TRUE(place);
        EXPECT_EQ(place->launcher, name);
        EXPECT_EQ(place->rank, 3);
        EXPECT_EQ(place->size, 5);
        EXPECT_EQ(place->variables, std::string(rank) + "=3 and " + size + "=5");
        EXPECT_THAT(place->name, HasSubstr("symm-"));
    }
}

std::string name_with(Variables variables) {
    variables.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "here"}});
    const Environment environment(variables);
    return placement_from_environment()->name;
}

TEST(Launcher, RunsOfOneLauncherMeetApart) {
    const std::string plain = name_with({});
    EXPECT_EQ(name_with({}), plain);
    EXPECT_EQ(name_with({{"RANK", "1"}}), plain);
    for (const char* variable :
         {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
          "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "SYMM_BOOTSTRAP"}) {
        const std::string one = name_with({{variable, "1"}});
        EXPECT_NE(one, plain) << variable;
        EXPECT_NE(one, name_with({{variable, "2"}})) << variable;
    }
}

TEST(Launcher, TheNameThatIsAskedForIsAllThatCounts) {
    EXPECT_EQ(name_with({{"SYMM_BOOTSTRAP", "secret"}, {"MASTER_PORT", "1"}}),
              name_with({{"SYMM_BOOTSTRAP", "secret"}, {"MASTER_PORT", "2"}}));
    EXPECT_THAT(name_with({{"SYMM_BOOTSTRAP", "secret"}}), ::testing::Not(HasSubstr("secret")));
}

// The output of a shell script in which "$0" is this program.
std::string name_from(const std::string& script) {
    const std::string command =
        "exec bash -c '" + script + "' " + std::filesystem::canonical("/proc/self/exe").string();
    FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    const std::size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe);
    EXPECT_EQ(::pclose(pipe), 0) << script;
    return {buffer.data(), length};
}
// For the next test, which runs this one in processes of its own; elsewhere it does nothing.
TEST(Launcher, PrintsItsNameWhereAskedTo) {
    if (std::getenv("SYMM_TEST_PRINT") != nullptr) {
        std::printf("%s\n", placement_from_environment()->name.c_str());
        std::fflush(stdout);
        std::_Exit(0);
    }
}

TEST(Launcher, RunsOfTwoLaunchingProcessesMeetApart) {
    const Environment environment(Variables{});
    const std::string run =
        "SYMM_TEST_PRINT=1 WORLD_SIZE=2 MASTER_PORT=7 RANK=$rank timeout 60 setsid -w $0 "
        "--gtest_filter=Launcher.PrintsItsNameWhereAskedTo --gtest_brief=1 | grep symm-";
    const std::string both = "for rank in 0 1; do " + run + "; done";
    const std::string first = name_from(both);
    const std::string second = name_from(both);
    // Between each rank and the shell that started it are `timeout` and `setsid`.
    ASSERT_EQ(first.size() % 2, 0u) << first;
    EXPECT_EQ(first.substr(0, first.size() / 2), first.substr(first.size() / 2));
    EXPECT_NE(first, second);
}

// The output of commands that are typed into an interactive bash, in which "$1" is this program.
std::string typed(const std::string& commands) {
    int terminal = -1;
    const pid_t shell = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    if (shell == 0) {
        ::setenv("HISTFILE", "", 1);  // the commands are not the user's
        ::execlp("bash", "bash", "--norc", "--noprofile", "-i", nullptr);
        ::_exit(127);
    }
    const std::string lines = fmt::format(
        "set -- {}\n{}\nexit\n", std::filesystem::canonical("/proc/self/exe").string(), commands);
    EXPECT_EQ(::write(terminal, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    std::string output;
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
        output.append(buffer.data(), static_cast<std::size_t>(n));
    }
    ::close(terminal);
    EXPECT_EQ(::waitpid(shell, nullptr, 0), shell);
    return output;
}

TEST(Launcher, RunsThatAnInteractiveShellStartsNeedAName) {
    const Environment environment(Variables{});
    const std::string rank = "SYMM_TEST_PRINT=1 RANK=0 WORLD_SIZE=2 ";
    const std::string start = "\"$1\" --gtest_filter=Launcher.PrintsItsNameWhereAskedTo";
    EXPECT_THAT(typed(rank + start), HasSubstr("SYMM_BOOTSTRAP to one text"));
    EXPECT_THAT(typed(rank + "timeout 60 " + start), HasSubstr("SYMM_BOOTSTRAP to one text"));
    // With a name, with a launcher's word about the job, and from a script.
    EXPECT_THAT(typed("SYMM_BOOTSTRAP=a " + rank + start), HasSubstr("\nsymm-"));
    EXPECT_THAT(typed("MASTER_PORT=1 " + rank + start), HasSubstr("\nsymm-"));
    EXPECT_THAT(typed("bash -c '" + rank + start + "; true' x \"$1\""), HasSubstr("\nsymm-"));
}

TEST(Launcher, RunsOfAnUnknownProcessNeedAName) {
    const Environment environment(Variables{});
    if (std::system("unshare --user --map-root-user --pid --fork true 2>/dev/null") != 0) {
        GTEST_SKIP() << "this user may not make PID namespaces";
    }
    const std::string run =
        " SYMM_TEST_PRINT=1 RANK=0 WORLD_SIZE=2 unshare --user --map-root-user --pid --fork "
        "--mount-proc $0 --gtest_filter=Launcher.PrintsItsNameWhereAskedTo; true";
    EXPECT_THAT(name_from(run), HasSubstr("SYMM_BOOTSTRAP to one text"));
    EXPECT_THAT(name_from("SYMM_BOOTSTRAP=a" + run), HasSubstr("\nsymm-"));
}

TEST(Launcher, AnEmptyVariableIsAsOneThatIsNotSet) {
    EXPECT_EQ(name_with({{"LOCAL_WORLD_SIZE", ""}, {"MASTER_PORT", ""}, {"SYMM_BOOTSTRAP", ""}}),
              name_with({}));
    const Environment environment({{"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"},
                                   {"SLURM_STEP_NUM_NODES", ""},
                                   {"SLURM_JOB_ID", "7"}});
    EXPECT_TRUE(placement_from_environment());
}

TEST(Launcher, NumbersThatMakeNoSenseAreNamed) {
    const std::pair<const char*, const char*> pairs[] = {{"5", "5"},  {"-1", "5"},   {"x", "5"},
                                                         {"1 ", "5"}, {"0x1", "5"},  {"0", "0"},
                                                         {"0", "65"}, {"0", "many"}, {"1e3", "5"}};
    for (const auto& [rank, size] : pairs) {
        const Environment environment({{"RANK", rank}, {"WORLD_SIZE", size}});
        EXPECT_THAT([] { static_cast<void>(placement_from_environment()); },
                    ::testing::ThrowsMessage<UsageError>(HasSubstr("SYMM_LAUNCHER=none")))
            << rank << " of " << size;
    }
}

TEST(Launcher, SeveralHostsAreRefused) {
    for (const Variables& variables :
         {Variables{{"RANK", "0"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "8"}},
          {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_STEP_NUM_NODES", "2"}}}) {
        const Environment environment(variables);
        EXPECT_THAT(
            [] { static_cast<void>(placement_from_environment()); },
            ::testing::ThrowsMessage<UsageError>(AllOf(HasSubstr("16"), HasSubstr("one host"))));
    }
}

}  // namespace
}  // namespace symm
