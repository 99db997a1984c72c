// The program as a user runs it.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/tests/program_case.hpp"

namespace symm {
namespace {

using namespace testing;

void expect_runs(const std::vector<ProgramCase>& cases) {
    expect_runs("01_vmm_alloc", cases);
}

const std::vector<std::string> kEightSteps = {"1. cuMemGetAllocationGranularity(",
                                              "2. cuMemCreate(",
                                              "3. cuMemAddressReserve(",
                                              "4. cuMemMap(",
                                              "5. cuMemSetAccess(",
                                              "6. cuMemUnmap(",
                                              "7. cuMemAddressFree(",
                                              "8. cuMemRelease("};

TEST(Program, ShowsWhatItDoes) {
    const std::string two_pieces = std::string(14, 'A') + std::string(14, 'B');
    expect_runs({
        {"", 0, kEightSteps},
        {"",
         0,
         {"they say nothing about a GPU", "| open to device 0       |         |",
          "All checks passed."}},
        {"--device 1 --size 1",
         0,
         {"VIRTUAL_MEMORY_MANAGEMENT", "HANDLE_TYPE_POSIX_FD", "HANDLE_TYPE_FABRIC", "HOST_NUMA_ID",
          "RDMA_WITH_CUDA_VMM", "DMA_BUF"},
         {"SYMM_EMU_DEVICES=2"}},
        {"--size 2097153", 0, {"become 2 granules"}},
        {"--size 3M --grow 40M", 0, {"grew to", "shrank to", "The pointer stayed"}},
        {"--size 4M --grow 16M",
         0,
         {"[" + std::string(14, 'A') + std::string(42, '.') + "]",
          "[" + two_pieces + std::string(28, 'C') + "]"}},
        {"--help", 0, {"--size", "--device", "--grow"}},
        {"--size 64M",
         1,
         {"cuMemCreate(size=67108864", "CUDA_ERROR_OUT_OF_MEMORY"},
         {"SYMM_EMU_MEMORY=32M"}},
    });
}

TEST(Program, RefusesBadUsageWithOneLine) {
    expect_refused("01_vmm_alloc",
                   "--size 0 | --size 12Q | --size -5 | --size | --device 99 | --device -1 | "
                   "--device x | --size 8M --grow 4M | --bogus | --driver qemu");
}

TEST(Program, RepeatsTheEndsOfALongArgument) {
    const Finished run = run_program("01_vmm_alloc --size " + std::string(50'000, 'x') + "y");
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_LT(run.output.size(), 1000U);
    EXPECT_NE(run.output.find("xx ... xx"), std::string::npos) << run.output;
}

TEST(Program, NamesTheCallThatFails) {
    for (const std::string& step : kEightSteps) {
        const std::string function = step.substr(3, step.size() - 4);
        expect_runs({{"--size 2M",
                      1,
                      {"error: " + function, "CUDA_ERROR_NOT_PERMITTED"},
                      {"SYMM_EMU_FAIL=" + function + ":1:CUDA_ERROR_NOT_PERMITTED"}}});
    }
}

TEST(Program, FailsWhereSomethingCannotBeGivenBack) {
    // All but the first three fail in destructors.
    for (const std::string call :
         {"cuMemUnmap:1", "cuMemUnmap:2", "cuMemRelease:4", "cuMemAddressFree:2", "cuCtxDestroy:1",
          "cuDevicePrimaryCtxRelease:1"}) {
        expect_runs({{"--size 4M --grow 16M",
                      1,
                      {"failed: CUDA_ERROR_UNKNOWN"},
                      {"SYMM_EMU_FAIL=" + call + ":CUDA_ERROR_UNKNOWN"}}});
    }
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    // The first fills stdout's buffer, and fails while it runs; the others fail at the end.
    for (const char* command :
         {"01_vmm_alloc --size 2M --grow 64M", "01_vmm_alloc --size 2M", "01_vmm_alloc --help"}) {
        expect_failure_without_stdout(command);
    }
}

// A signal would end it without a word.
TEST(Program, SaysThatAFileMayNotBeSoLarge) {
    const auto expect_end = [](const Finished& run, const std::string& error) {
        EXPECT_EQ(run.exit_code, 1);
        EXPECT_NE(run.output.find(error), std::string::npos) << run.output;
    };
    expect_end(run_program("01_vmm_alloc 2>&1 >/dev/null; exit $?", "prlimit --fsize=4096"),
               "ulimit -f");
    const TemporaryDirectory directory;
    expect_end(run_program(fmt::format("01_vmm_alloc --help 2>&1 >{}; exit $?",
                                       (directory.path() / "out").string()),
                           "prlimit --fsize=100"),
               "error: cannot write to stdout: File too large");
}

}  // namespace
}  // namespace symm
