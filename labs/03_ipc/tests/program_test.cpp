// The program 03_ipc: its output, its exit codes, what it leaves behind.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "common/tests/program_case.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void expect_runs(const std::vector<ProgramCase>& cases) {
    expect_runs("03_ipc", cases);
}

TEST(Program, EndsAsItShouldAndLeavesNothing) {
    const std::string right = "All checks passed.";
    expect_runs({{"", 0, {right}},
                 {"--ranks 3",
                  0,
                  {"[0] exported as file descriptor", "[1] imported from file descriptor",
                   "[2] imported from file descriptor", "rank 2 at 0x", "words right",
                   "CUDA_ERROR_INVALID_VALUE", right}},
                 {"--ranks 3 --mode thread", 0, {right}},
                 {"--ranks 1", 0, {right}},
                 {"--ranks 5 --bytes 4", 0, {right}},
                 {"--help", 0, {"--ranks"}},
                 {"--ranks 0", 2, {"1 to 64"}},
                 {"--ranks 65", 2, {"1 to 64"}},
                 {"--ranks many", 2, {"--ranks"}},
                 {"--mode fibre", 2, {"choose one of process, thread"}},
                 {"--bytes 7", 2, {"multiple of 4"}},
                 {"--bytes 0", 2, {"multiple of 4"}},
                 {"--bytes 4096G", 2, {"pass a smaller size"}},
                 {"--bytes 4096G --mode thread", 2, {"pass a smaller size"}},
                 {"--bytes much", 2, {"much"}},
                 {"--driver imaginary", 2, {"imaginary"}},
                 {"", 1, {"cannot access device", "lab 04"}, {"SYMM_EMU_P2P=0"}},
                 {"--mode thread", 1, {"cannot access device", "lab 04"}, {"SYMM_EMU_P2P=0"}},
                 {"--teleport", 2, {"--teleport"}}});
}

TEST(Program, WorksWithoutInputAndErrors) {
    for (const char* mode : {"process", "thread"}) {
        const Finished run =
            run_program(std::string("03_ipc --mode ") + mode + " <&- 2>&-; echo \"exit $?\"");
        EXPECT_THAT(run.output, HasSubstr("All checks passed.\nexit 0\n")) << mode;
    }
}

// A walk reports some refusals as part of its story. It must not take a failure for one of these.
TEST(Program, FailsWithTheCauseWhateverCallFails) {
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
        expect_runs({{"",
                      1,
                      {function, "CUDA_ERROR_UNKNOWN"},
                      {"SYMM_EMU_FAIL=" + function + ":1:CUDA_ERROR_UNKNOWN"}}});
    }
}

// A rank that a launcher starts, without the variables of a launcher that may have started this
// test.
std::unique_ptr<Running> launched(std::vector<std::string> variables,
                                  const std::vector<std::string>& options = {}) {
    for (const std::string name :
         {"SYMM_LAUNCHER=", "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK="}) {
        if (std::none_of(variables.begin(), variables.end(),
                         [&](const std::string& one) { return one.starts_with(name); })) {
            variables.push_back(name);
        }
    }
    std::vector<std::string> command{binary_directory() + "/03_ipc", "--driver", "emulated"};
    command.insert(command.end(), options.begin(), options.end());
    return std::make_unique<Running>(command, variables);
}

TEST(Program, TakesItsRankFromALauncher) {
    for (const auto& [rank_name, size_name] :
         {std::pair("RANK", "WORLD_SIZE"), std::pair("PMI_RANK", "PMI_SIZE"),
          std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
          std::pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")}) {
        std::vector<std::unique_ptr<Running>> ranks;
        for (int rank = 0; rank < 3; ++rank) {
            ranks.push_back(
                launched({fmt::format("{}={}", rank_name, rank), fmt::format("{}=3", size_name)}));
        }
        for (const auto& rank : ranks) {
            EXPECT_TRUE(rank->end().success()) << rank->errors();
            EXPECT_THAT(rank->left(), IsEmpty());
        }
        EXPECT_THAT(ranks[0]->output(), HasSubstr("All checks passed."));
        EXPECT_THAT(ranks[2]->output(), HasSubstr(", GPU 2 ("));
    }
}

// As in the shell of a batch job, or in a container of a job: one rank would show little.
TEST(Program, NamesTheLauncherThatMakesItIgnoreItsOptions) {
    for (const auto& [option, value] : {std::pair("--ranks", "4"), std::pair("--mode", "thread")}) {
        const auto one = launched({"RANK=0", "WORLD_SIZE=1"}, {option, value});
        EXPECT_TRUE(one->end().success());
        const std::string errors = one->errors();
        EXPECT_THAT(errors, AllOf(HasSubstr(fmt::format("{} {}", option, value)),
                                  HasSubstr("torchrun"), HasSubstr("SYMM_LAUNCHER=none")));
        EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
    }
    const auto not_ignored = launched({"RANK=0", "WORLD_SIZE=1"}, {"--ranks", "1"});
    EXPECT_TRUE(not_ignored->end().success());
    EXPECT_EQ(not_ignored->errors(), "");
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command : {"03_ipc --mode thread", "03_ipc --mode process"}) {
        expect_failure_without_stdout(command);
    }
}

}  // namespace
}  // namespace symm
