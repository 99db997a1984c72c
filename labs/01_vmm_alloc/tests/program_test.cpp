// The program as a user runs it.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/tests/full_pipe.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

Finished run_lab(const std::string& arguments, const std::string& environment = "") {
    return run_program("01_vmm_alloc " + arguments, environment);
}

bool says(const Finished& finished, const std::string& text) {
    return finished.output.find(text) != std::string::npos;
}

const std::vector<std::string> kEightSteps = {"1. cuMemGetAllocationGranularity(",
                                              "2. cuMemCreate(",
                                              "3. cuMemAddressReserve(",
                                              "4. cuMemMap(",
                                              "5. cuMemSetAccess(",
                                              "6. cuMemUnmap(",
                                              "7. cuMemAddressFree(",
                                              "8. cuMemRelease("};

TEST(Program, TellsTheEightStepsInOrder) {
    const Finished finished = run_lab("");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    std::size_t at = 0;
    for (const std::string& step : kEightSteps) {
        at = finished.output.find(step, at);
        ASSERT_NE(at, std::string::npos) << step << " is missing in\n" << finished.output;
    }
    EXPECT_TRUE(says(finished, "| open to device 0       |         |")) << finished.output;
    EXPECT_TRUE(says(finished, "All checks passed.")) << finished.output;
}

TEST(Program, ShowsTheAttributesOfTheDevice) {
    const Finished finished = run_lab("--device 1 --size 1", "SYMM_EMU_DEVICES=2");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    for (const char* name :
         {"VIRTUAL_MEMORY_MANAGEMENT", "HANDLE_TYPE_POSIX_FD", "HANDLE_TYPE_FABRIC", "HOST_NUMA_ID",
          "RDMA_WITH_CUDA_VMM", "DMA_BUF"}) {
        EXPECT_TRUE(says(finished, name)) << name << " is missing in\n" << finished.output;
    }
}

TEST(Program, DoesNotPassEmulatedTimesForPerformance) {
    EXPECT_TRUE(says(run_lab("--size 2M"), "they say nothing about a GPU"));
}

TEST(Program, RoundsOddSizesUp) {
    for (const char* size : {"1", "3M", "2097153", "5MiB"}) {
        const Finished finished = run_lab(std::string("--size ") + size);
        EXPECT_EQ(finished.exit_code, 0) << size << "\n" << finished.output;
    }
}

TEST(Program, GrowsInPlace) {
    const Finished finished = run_lab("--size 3M --grow 40M");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    EXPECT_TRUE(says(finished, "grew to"));
    EXPECT_TRUE(says(finished, "shrank to"));
    EXPECT_TRUE(says(finished, "The pointer stayed"));
}

TEST(Program, DrawsEveryPieceOfAGrowingBuffer) {
    const Finished finished = run_lab("--size 4M --grow 16M");
    const std::string drawn[] = {
        std::string(14, 'A') + std::string(42, '.'),
        std::string(14, 'A') + std::string(14, 'B') + std::string(28, 'C')};
    for (const std::string& bar : drawn) {
        EXPECT_TRUE(says(finished, "[" + bar + "]")) << bar << "\n" << finished.output;
    }
}

TEST(Program, HelpsWithEveryOption) {
    const Finished finished = run_lab("--help");
    EXPECT_EQ(finished.exit_code, 0);
    for (const char* option : {"--size", "--device", "--grow", "--driver"}) {
        EXPECT_TRUE(says(finished, option)) << option;
    }
}

TEST(Program, RepeatsTheEndsOfALongArgument) {
    const Finished run = run_lab("--size " + std::string(50'000, 'x') + "y");
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_LT(run.output.size(), 1000U);
    EXPECT_TRUE(says(run, "xx ... xx")) << run.output;
}

TEST(Program, RefusesBadUsageWithOneLine) {
    for (const char* arguments :
         {"--size 0", "--size 12Q", "--size -5", "--size", "--device 99", "--device -1",
          "--device x", "--size 8M --grow 4M", "--bogus", "--driver qemu"}) {
        expect_refused_in_one_line(run_lab(arguments), arguments);
    }
}

TEST(Program, FailsClearlyBeyondTheDevicesMemory) {
    const Finished finished = run_lab("--size 64M", "SYMM_EMU_MEMORY=32M");
    EXPECT_EQ(finished.exit_code, 1) << finished.output;
    EXPECT_TRUE(says(finished, "cuMemCreate(size=67108864")) << finished.output;
    EXPECT_TRUE(says(finished, "CUDA_ERROR_OUT_OF_MEMORY")) << finished.output;
}

TEST(Program, NamesTheCallThatFails) {
    for (const std::string& step : kEightSteps) {
        const std::string function = step.substr(3, step.size() - 4);
        const Finished finished =
            run_lab("--size 2M", "SYMM_EMU_FAIL=" + function + ":1:CUDA_ERROR_NOT_PERMITTED");
        EXPECT_EQ(finished.exit_code, 1) << function << "\n" << finished.output;
        const std::size_t error = finished.output.find("error: " + function);
        EXPECT_NE(error, std::string::npos) << function << "\n" << finished.output;
        EXPECT_NE(finished.output.find("CUDA_ERROR_NOT_PERMITTED", error), std::string::npos)
            << finished.output;
    }
}

TEST(Program, FailsWhereSomethingCannotBeGivenBack) {
    // All but the first three fail in destructors.
    for (const char* call : {"cuMemUnmap:1", "cuMemUnmap:2", "cuMemRelease:4", "cuMemAddressFree:2",
                             "cuCtxDestroy:1", "cuDevicePrimaryCtxRelease:1"}) {
        const Finished finished = run_lab(
            "--size 4M --grow 16M", std::string("SYMM_EMU_FAIL=") + call + ":CUDA_ERROR_UNKNOWN");
        EXPECT_EQ(finished.exit_code, 1) << call << "\n" << finished.output;
        EXPECT_TRUE(says(finished, "failed: CUDA_ERROR_UNKNOWN")) << call << finished.output;
    }
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    // The first fills stdout's buffer, and fails while it runs; the others fail at the end.
    for (const char* command :
         {"01_vmm_alloc --size 2M --grow 64M", "01_vmm_alloc --size 2M", "01_vmm_alloc --help"}) {
        expect_failure_without_stdout(command);
    }
}

TEST(Program, DoesNotWaitForAReaderForEver) {
    for (const char* arguments : {"--size 2M", "--help"}) {
        const FullPipe pipe;
        const Finished finished =
            run_program(fmt::format("01_vmm_alloc {} 2>&1 >/proc/{}/fd/{}; exit $?", arguments,
                                    ::getpid(), pipe.writer.get()),
                        "SYMM_TIMEOUT=1", 20);
        EXPECT_EQ(finished.exit_code, 1) << arguments;
        EXPECT_EQ(finished.output,
                  "error: cannot write to stdout: the pipe was not read for the 1 s of "
                  "SYMM_TIMEOUT\n")
            << arguments;
    }
}

// A signal would end it without a word.
TEST(Program, SaysThatAFileMayNotBeSoLarge) {
    const Finished memory =
        run_program("01_vmm_alloc 2>&1 >/dev/null; exit $?", "prlimit --fsize=4096");
    EXPECT_EQ(memory.exit_code, 1);
    EXPECT_TRUE(says(memory, "ulimit -f")) << memory.output;
    EXPECT_TRUE(says(memory, "failed: CUDA_ERROR_OPERATING_SYSTEM")) << memory.output;
    const TemporaryDirectory directory;
    const Finished output = run_program(
        fmt::format("01_vmm_alloc --help 2>&1 >{}; exit $?", (directory.path() / "out").string()),
        "prlimit --fsize=100");
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_TRUE(says(output, "error: cannot write to stdout: File too large")) << output.output;
}

}  // namespace
}  // namespace symm
