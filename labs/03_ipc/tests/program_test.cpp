// The program 03_ipc: its output, its exit codes, what it leaves behind.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <ostream>
#include <thread>

#include "common/tests/run_program.hpp"
#include "common/tests/running.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kProgram = binary_directory() + "/03_ipc";

struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string says;  // in the output of a success, else in the errors
};

void PrintTo(const Case& one, std::ostream* out) {
    for (const std::string& argument : one.arguments) {
        *out << argument << ' ';
    }
    *out << "exits with " << one.exit_code;
}

class Program : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Usage, Program,
    ::testing::Values(
        Case{{}, 0, "All checks passed."},
        Case{{"--ranks", "3", "--mode", "thread"}, 0, "All checks passed."},
        Case{{"--ranks", "1"}, 0, "All checks passed."},
        Case{{"--ranks", "5", "--bytes", "4"}, 0, "All checks passed."},
        Case{{"--help"}, 0, "--ranks"}, Case{{"--ranks", "0"}, 2, "1 to 64"},
        Case{{"--ranks", "65"}, 2, "1 to 64"}, Case{{"--ranks", "many"}, 2, "--ranks"},
        Case{{"--mode", "fibre"}, 2, "choose one of process, thread"},
        Case{{"--bytes", "7"}, 2, "multiple of 4"}, Case{{"--bytes", "0"}, 2, "multiple of 4"},
        Case{{"--bytes", "4096G"}, 2, "pass a smaller size"},
        Case{{"--bytes", "4096G", "--mode", "thread"}, 2, "pass a smaller size"},
        Case{{"--bytes", "much"}, 2, "much"}, Case{{"--driver", "imaginary"}, 2, "imaginary"},
        Case{{"--teleport"}, 2, "--teleport"}));

TEST_P(Program, ExitsAsItShouldAndLeavesNothing) {
    std::vector<std::string> command{kProgram};
    command.insert(command.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    Running program(command);
    EXPECT_EQ(program.end().code, GetParam().exit_code) << program.output() << program.errors();
    if (GetParam().exit_code == 0) {
        EXPECT_THAT(program.output(), HasSubstr(GetParam().says));
    } else {
        EXPECT_THAT(program.errors(), HasSubstr(GetParam().says));
        const std::string errors = program.errors();
        EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    }
    EXPECT_THAT(program.left(), IsEmpty());
}

TEST(Program, PrintsEveryRanksDescriptorsAndAddresses) {
    Running program({kProgram, "--ranks", "3", "--driver", "emulated"});
    EXPECT_TRUE(program.end().success()) << program.errors();
    EXPECT_THAT(program.output(),
                AllOf(HasSubstr("[0] exported as file descriptor"),
                      HasSubstr("[1] imported from file descriptor"),
                      HasSubstr("[2] imported from file descriptor"), HasSubstr("rank 2 at 0x"),
                      HasSubstr("CUDA_ERROR_INVALID_VALUE"), HasSubstr("words right")));
}

TEST(Program, WorksWithoutInputAndErrors) {
    for (const char* mode : {"process", "thread"}) {
        const Finished run =
            run_program(std::string("03_ipc --mode ") + mode + " <&- 2>&-; echo \"exit $?\"");
        EXPECT_THAT(run.output, HasSubstr("All checks passed.\nexit 0\n")) << mode;
    }
}

TEST(Program, FailsWithTheCauseWhereTheDriverFails) {
    Running program({kProgram, "--ranks", "3", "--driver", "emulated"},
                    {"SYMM_EMU_FAIL=cuMemMap:2:CUDA_ERROR_OUT_OF_MEMORY"});
    EXPECT_EQ(program.end().code, 1);
    EXPECT_THAT(program.errors(),
                AllOf(HasSubstr("cuMemMap"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
    EXPECT_THAT(program.left(), IsEmpty());
}

// A walk reports some refusals as part of its story. It must not take a failure for one of these.
TEST(Program, FailsWhateverCallFails) {
    for (const std::string function : {"cuDeviceGetCount",
                                       "cuDevicePrimaryCtxRetain",
                                       "cuCtxSetCurrent",
                                       "cuDeviceGet",
                                       "cuDeviceGetAttribute",
                                       "cuDeviceCanAccessPeer",
                                       "cuMemGetAllocationGranularity",
                                       "cuMemCreate",
                                       "cuMemExportToShareableHandle",
                                       "cuMemImportFromShareableHandle",
                                       "cuMemAddressReserve",
                                       "cuMemMap",
                                       "cuMemSetAccess",
                                       "cuStreamCreate",
                                       "cuLaunchKernel",
                                       "cuStreamQuery",
                                       "cuMemcpyDtoH",
                                       "cuMemGetHandleForAddressRange",
                                       "cuIpcGetMemHandle",
                                       "cuMemAlloc",
                                       "cuIpcOpenMemHandle"}) {
        Running program({kProgram, "--driver", "emulated"},
                        {"SYMM_EMU_FAIL=" + function + ":1:CUDA_ERROR_UNKNOWN"});
        EXPECT_EQ(program.end().code, 1) << function << "\n" << program.output();
        EXPECT_THAT(program.errors(), AllOf(HasSubstr(function), HasSubstr("CUDA_ERROR_UNKNOWN")));
        EXPECT_THAT(program.left(), IsEmpty()) << function;
    }
}

TEST(Program, SaysWhatToDoWhereDevicesAreNoPeers) {
    for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--mode", "thread"}}) {
        std::vector<std::string> command{kProgram, "--driver", "emulated"};
        command.insert(command.end(), how.begin(), how.end());
        Running program(command, {"SYMM_EMU_P2P=0"});
        EXPECT_EQ(program.end().code, 1);
        EXPECT_THAT(program.errors(),
                    AllOf(HasSubstr("cannot access device"), HasSubstr("lab 04")));
    }
}

// A launcher's variables, without those of a launcher that may have started this test.
std::vector<std::string> launched(std::vector<std::string> variables) {
    for (const std::string name :
         {"SYMM_LAUNCHER=", "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK="}) {
        if (std::none_of(variables.begin(), variables.end(),
                         [&](const std::string& one) { return one.starts_with(name); })) {
            variables.push_back(name);
        }
    }
    return variables;
}

TEST(Program, TakesItsRankFromALauncher) {
    for (const auto& names : {std::pair("RANK", "WORLD_SIZE"), std::pair("PMI_RANK", "PMI_SIZE"),
                              std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                              std::pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")}) {
        std::vector<std::unique_ptr<Running>> ranks;
        for (const char* rank : {"0", "1", "2"}) {
            ranks.push_back(std::make_unique<Running>(
                std::vector<std::string>{kProgram, "--driver", "emulated"},
                launched(
                    {std::string(names.first) + "=" + rank, std::string(names.second) + "=3"})));
        }
        for (const auto& rank : ranks) {
            EXPECT_TRUE(rank->end().success()) << rank->errors();
            EXPECT_THAT(rank->left(), IsEmpty());
        }
        EXPECT_THAT(ranks[0]->output(), HasSubstr("All checks passed."));
        EXPECT_THAT(ranks[2]->output(), HasSubstr(", GPU 2 ("));
    }
}

// Two steps of one job: the ranks come in an order in which ranks of different steps would meet.
TEST(Program, StepsOfOneJobDoNotMix) {
    std::vector<std::unique_ptr<Running>> ranks;
    for (const auto& [step, rank] : {std::pair(0, 0), {1, 1}, {1, 0}, {0, 1}}) {
        ranks.push_back(std::make_unique<Running>(
            std::vector<std::string>{kProgram, "--driver", "emulated", "--bytes",
                                     step == 0 ? "800" : "1600"},
            launched({"SLURM_JOB_ID=7", fmt::format("SLURM_STEP_ID={}", step),
                      fmt::format("SLURM_PROCID={}", rank), "SLURM_STEP_NUM_TASKS=2"})));
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        EXPECT_TRUE(ranks[i]->end().success()) << ranks[i]->errors();
        EXPECT_THAT(ranks[i]->output(),
                    HasSubstr(i == 0 || i == 3 ? "all 200 words right" : "all 400 words right"));
    }
}

TEST(Program, ALaunchersRankThatNeverComesIsNamed) {
    Running rank_0({kProgram, "--driver", "emulated"},
                   launched({"RANK=0", "WORLD_SIZE=2", "SYMM_TIMEOUT=1"}));
    EXPECT_EQ(rank_0.end().code, 1);
    EXPECT_THAT(rank_0.errors(), AllOf(HasSubstr("rank 1 of 2 did not join within 1 s"),
                                       HasSubstr("RANK=0 and WORLD_SIZE=2")));
}

// As in the shell of a batch job, or in a container of a job: one rank would show little.
TEST(Program, NamesTheLauncherThatMakesItIgnoreItsOptions) {
    const auto alone = launched({"RANK=0", "WORLD_SIZE=1"});
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{"--ranks", "4"}, {"--mode", "thread"}}) {
        std::vector<std::string> command{kProgram, "--driver", "emulated"};
        command.insert(command.end(), options.begin(), options.end());
        Running one(command, alone);
        EXPECT_TRUE(one.end().success());
        const std::string errors = one.errors();
        EXPECT_THAT(errors, AllOf(HasSubstr(options[0] + " " + options[1]), HasSubstr("torchrun"),
                                  HasSubstr("SYMM_LAUNCHER=none")));
        EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
    }
    Running not_ignored({kProgram, "--driver", "emulated", "--ranks", "1"}, alone);
    EXPECT_TRUE(not_ignored.end().success());
    EXPECT_EQ(not_ignored.errors(), "");
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command : {"03_ipc --mode thread", "03_ipc --mode process"}) {
        expect_failure_without_stdout(command);
    }
}

}  // namespace
}  // namespace symm
