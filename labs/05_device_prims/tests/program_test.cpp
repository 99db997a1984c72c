#include <gtest/gtest.h>

#include "common/tests/run_program.hpp"
#include "common/tests/special_files.hpp"

namespace symm {
namespace {

TEST(Program, PlaysAsThreads) {
    const Finished run = run_program("05_device_prims --ranks 3 --mode thread --rounds 20");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("one way by packet"), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("barrier of 3 ranks"), std::string::npos) << run.output;
}

TEST(Program, PlaysAsProcesses) {
    const Finished run = run_program("05_device_prims --rounds 20");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("20 rounds right"), std::string::npos) << run.output;
}

TEST(Program, WalksTheThreeWaysToAKernel) {
    const Finished run =
        run_program("05_device_prims kernels --driver emulated --count 1001 --launches 2");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    for (const char* row : {"PTX: scale and shift", "symbol: scale and shift",
                            "table, 0: scale and shift", "table, 1: greatest", "table, 2: least"}) {
        const std::size_t at = run.output.find(row);
        ASSERT_NE(at, std::string::npos) << row << run.output;
        const std::string line = run.output.substr(at, run.output.find('\n', at) - at);
        EXPECT_NE(line.find("1001 right"), std::string::npos) << line;
        EXPECT_NE(line.find("(emulated)"), std::string::npos) << line;
    }
}

TEST(Program, RunsCollectivesOnARing) {
    for (const char* arguments :
         {"--ranks 3 --mode thread ring --bytes 1K:4K",
          "--ranks 2 --mode process ring --direct --protocol simple --bytes 4K --graph",
          "--ranks 4 --mode thread ring --collective allgather --memory host --dtype uint8",
          "--ranks 2 --mode process ring --collective reduce --op avg --dtype int64 --bytes 800"}) {
        const Finished run = run_program(std::string("05_device_prims ") + arguments);
        EXPECT_EQ(run.exit_code, 0) << arguments << run.output;
        EXPECT_NE(run.output.find("right"), std::string::npos) << arguments << run.output;
    }
}

TEST(Program, RefusesBadUsage) {
    for (const char* arguments : {"--ranks 0",
                                  "--ranks 17",
                                  "--mode banana",
                                  "--rounds 0",
                                  "--blocks 1000",
                                  "--blocks 128",
                                  "--blocks 128 --mode thread",
                                  "--threads x",
                                  "--what",
                                  "kernels --count x",
                                  "kernels --launches 0",
                                  "kernels --ranks 2",
                                  "--ranks 3 kernels",
                                  "kernels ring",
                                  "--rounds 3 ring",
                                  "ring --direct --memory host",
                                  "ring --direct --protocol ll",
                                  "ring --protocol tree",
                                  "ring --collective gather",
                                  "ring --dtype int",
                                  "ring --op mean",
                                  "ring --bytes 3",
                                  "ring --bytes 8K:4K",
                                  "ring --memory host --protocol ll128",
                                  "ring --channels 0",
                                  "ring --trace t.json",
                                  "ring --protocol ll --bytes 1K:4K --trace t.json"}) {
        const Finished run = run_program(std::string("05_device_prims ") + arguments);
        EXPECT_EQ(run.exit_code, 2) << arguments << run.output;
        EXPECT_EQ(run.output.find("error: "), 0U) << run.output;
        EXPECT_EQ(run.output.find('\n'), run.output.size() - 1) << run.output;
    }
}

TEST(Program, RefusesLL128WhereALinkIsNotNVLink) {
    const char* over_pcie = "SYMM_EMU_P2P=2";
    const Finished all = run_program("05_device_prims --ranks 3 ring --bytes 1K", over_pcie);
    EXPECT_EQ(all.exit_code, 0) << all.output;
    EXPECT_NE(all.output.find("Without LL128: LL128 needs stores of 128 bytes that arrive whole: "
                              "the link from rank 0"),
              std::string::npos)
        << all.output;
    EXPECT_EQ(all.output.find("\nll128"), std::string::npos) << all.output;
    const Finished asked =
        run_program("05_device_prims --ranks 3 ring --protocol ll128 --bytes 1K", over_pcie);
    EXPECT_EQ(asked.exit_code, 2) << asked.output;
    // Ranks that share a device need no link.
    const Finished one_device =
        run_program("05_device_prims --ranks 3 --mode thread ring --protocol ll128 --bytes 1K",
                    "SYMM_EMU_P2P=2 SYMM_EMU_DEVICES=1");
    EXPECT_EQ(one_device.exit_code, 0) << one_device.output;
}

TEST(Program, WritesATraceIntoRegularFilesOnly) {
    expect_regular_files_only([](const std::string& file) {
        return "05_device_prims --ranks 2 ring --protocol ll --bytes 1K --trace " + file;
    });
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command : {"05_device_prims --rounds 2 --mode thread",
                                "05_device_prims --rounds 2 --mode process"}) {
        expect_failure_without_stdout(command);
    }
}

}  // namespace
}  // namespace symm
