#include <gtest/gtest.h>

#include <fstream>

#include "common/tests/program_case.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

using testing::expect_runs;

TEST(TraceProgram, ShowsTheCallsOfEachStep) {
    const std::vector<std::string> lines{"NCCL's calls are not shown: it needs GPUs",
                                         "== alloc\nours: mem_alloc(4M)",
                                         "    cuMemMap(va1+2M, 4M, 0, mem1, 0)",
                                         "    cuMemAddressReserve(&va2, 12M, 2M, 0, 0)",
                                         "    cuLaunchKernel(",
                                         "    cuMemAddressFree(va1, 8M)"};
    expect_runs("06_allreduce_trace",
                {{"--ranks 3 --mode process", 0, lines}, {"--ranks 3 --mode thread", 0, lines}});
}

TEST(TraceProgram, ShowsOneStepBesideARecording) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "calls.txt";
    std::ofstream(path)
        << "NCCL 9.9, somewhere\n\n== alloc: x\n    first()\n\n== free: y\n    last()\n";
    const Finished run = run_program("06_allreduce_trace free --recording " + path);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("NCCL 9.9, somewhere, recorded\n"), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("== free\nNCCL: ncclMemFree\n    last()\nours: mem_free"),
              std::string::npos)
        << run.output;
    EXPECT_EQ(run.output.find("first()"), std::string::npos) << run.output;
}

TEST(TraceProgram, BeginsWithTheNumberOfCallsOfEachStep) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "calls.txt";
    std::ofstream(path) << "NCCL 9.9\n\n== alloc: x\n    a()\n    12 times:\n        b()\n"
                           "        c()\n    d()\n    and to ask or select: e,\n        f\n";
    expect_runs("06_allreduce_trace",
                {{"--recording " + path,
                  0,
                  {"driver calls that do something  NCCL  ours",
                   "\nalloc                             26     7\n",
                   "\nsetup                              0    ", "\n== alloc\n"}}});
}

TEST(TraceProgram, SaysWhatIsWrongWithItsArguments) {
    expect_runs("06_allreduce_trace",
                {{"fre", 2, {"there is no step 'fre': use one of alloc, "}},
                 {"--recording /nowhere", 2, {"--recording /nowhere: "}},
                 {"--record /tmp/calls.txt", 2, {"--record: it needs GPUs"}}});
}

TEST(TraceProgram, ReadsItsOwnFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_trace --recording " + file; });
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "calls.txt";
    for (const char* text :
         {"", "\x1b[31m\n", "NCCL\n\n== alloc: x\n\x1b[31m\n", "NCCL\nfirst()\n"}) {
        std::ofstream(path) << text;
        expect_runs("06_allreduce_trace",
                    {{"--recording " + path, 2, {"not written by --record"}}});
    }
}

}  // namespace
}  // namespace symm
