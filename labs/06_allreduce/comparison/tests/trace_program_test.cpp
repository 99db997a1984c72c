#include <gtest/gtest.h>

#include <fstream>

#include "common/tests/run_program.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

Finished traced(const std::string& arguments) {
    return run_program("06_allreduce_trace --driver emulated " + arguments);
}

TEST(TraceProgram, ShowsTheCallsOfEachStep) {
    for (const char* mode : {"process", "thread"}) {
        const Finished run = traced(std::string("--ranks 3 --mode ") + mode);
        EXPECT_EQ(run.exit_code, 0) << run.output;
        for (const char* line :
             {"NCCL's calls are not shown: it needs GPUs", "== alloc\nours: mem_alloc(4M)",
              "    cuMemMap(va1+2M, 4M, 0, mem1, 0)",
              "    cuMemAddressReserve(&va2, 12M, 2M, 0, 0)", "    cuLaunchKernel(",
              "    cuMemAddressFree(va1, 8M)"}) {
            EXPECT_NE(run.output.find(line), std::string::npos) << mode << ": " << line << "\n"
                                                                << run.output;
        }
    }
}

TEST(TraceProgram, ShowsOneStepBesideARecording) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "calls.txt";
    std::ofstream(path)
        << "NCCL 9.9, somewhere\n\n== alloc: x\n    first()\n\n== free: y\n    last()\n";
    const Finished run = traced("free --recording " + path);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("NCCL 9.9, somewhere, recorded\n"), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("== free\nNCCL: ncclMemFree\n    last()\nours: mem_free"),
              std::string::npos)
        << run.output;
    EXPECT_EQ(run.output.find("first()"), std::string::npos) << run.output;
}

TEST(TraceProgram, SaysWhatIsWrongWithItsArguments) {
    const std::pair<const char*, const char*> cases[] = {
        {"fre", "there is no step 'fre': use one of alloc, "},
        {"''", "there is no step '': use one of alloc, "},
        {"--recording /nowhere", "--recording /nowhere: "},
        {"--record /tmp/calls.txt", "--record: it needs GPUs"}};
    for (const auto& [arguments, message] : cases) {
        const Finished run = traced(arguments);
        EXPECT_EQ(run.exit_code, 2) << run.output;
        EXPECT_NE(run.output.find(message), std::string::npos) << run.output;
    }
}

TEST(TraceProgram, ReadsItsOwnFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_trace --recording " + file; });
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "calls.txt";
    for (const char* text :
         {"", "\x1b[31m\n", "NCCL\n\n== alloc: x\n\x1b[31m\n", "NCCL\nfirst()\n"}) {
        std::ofstream(path) << text;
        const Finished run = traced("--recording " + path);
        EXPECT_EQ(run.exit_code, 2) << text << run.output;
        EXPECT_NE(run.output.find("not written by --record"), std::string::npos) << run.output;
    }
}

TEST(TimelineProgram, NeedsGpus) {
    const Finished run = run_program("06_allreduce_timeline --driver emulated rows.tsv");
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_NE(run.output.find("it needs GPUs: emulated ones"), std::string::npos) << run.output;
}

}  // namespace
}  // namespace symm
