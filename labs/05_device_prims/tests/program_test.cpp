#include "common/tests/program_case.hpp"
#include "common/tests/special_files.hpp"

namespace symm {
namespace {

using namespace testing;

TEST(Program, PlaysAndRunsCollectivesOnARing) {
    expect_runs(
        "05_device_prims",
        {{"--ranks 3 --mode thread --rounds 20",
          0,
          {"one way by packet", "barrier of 3 ranks", "rank 1                21       -      21"}},
         {"--rounds 20", 0, {"20 rounds right"}},
         {"--ranks 3 --mode thread ring --bytes 1K:4K", 0, {"of 3 ranks (thread", "right"}},
         {"ring --ranks 3 --mode thread --bytes 1K", 0, {"of 3 ranks (thread", "right"}},
         {"--ranks 2 --mode process ring --direct --protocol simple --bytes 4K --graph",
          0,
          {"right"}},
         {"--ranks 4 --mode thread ring --collective allgather --memory host --dtype uint8",
          0,
          {"right"}},
         {"--ranks 2 --mode process ring --collective reduce --op avg --dtype int64 --bytes 800",
          0,
          {"right"}}});
}

TEST(Program, WalksTheThreeWaysToAKernel) {
    std::vector<std::string> rows;
    for (const char* row : {"PTX: scale and shift", "symbol: scale and shift",
                            "table, 0: scale and shift", "table, 1: greatest", "table, 2: least"}) {
        rows.insert(rows.end(), {row, "1001 right", "(emulated)"});
    }
    expect_runs("05_device_prims", {{"kernels --count 1001 --launches 2", 0, rows}});
}

TEST(Program, RefusesBadUsage) {
    expect_refused(
        "05_device_prims",
        "--ranks 0 | --ranks 17 | --mode banana | --rounds 0 | --blocks 1000 | --blocks 128 | "
        "--blocks 128 --mode thread | --threads x | --what | kernels --count x | "
        "kernels --launches 0 | kernels --ranks 2 | --ranks 3 kernels | kernels ring | "
        "--rounds 3 ring | ring --direct --memory host | ring --direct --protocol ll | "
        "ring --protocol tree | ring --collective gather | ring --dtype int | ring --op mean | "
        "ring --bytes 3 | ring --bytes 8K:4K | ring --memory host --protocol ll128 | "
        "ring --channels 0 | ring --trace t.json | "
        "ring --protocol ll --bytes 1K:4K --trace t.json");
}

TEST(Program, RefusesLL128WhereALinkIsNotNVLink) {
    const std::string over_pcie = "SYMM_EMU_P2P=2";
    expect_runs("05_device_prims",
                {{"--ranks 3 ring --bytes 1K",
                  0,
                  {"Without LL128: LL128 needs stores of 128 bytes that arrive whole: the link "
                   "from rank 0"},
                  {over_pcie}},
                 {"--ranks 3 ring --protocol ll128 --bytes 1K", 2, {}, {over_pcie}},
                 // Ranks that share a device need no link.
                 {"--ranks 3 --mode thread ring --protocol ll128 --bytes 1K",
                  0,
                  {},
                  {over_pcie, "SYMM_EMU_DEVICES=1"}}});
    EXPECT_EQ(
        run_program("05_device_prims --ranks 3 ring --bytes 1K", over_pcie).output.find("\nll128"),
        std::string::npos);
}

TEST(Program, WritesATraceIntoRegularFilesOnly) {
    expect_regular_files_only([](const std::string& file) {
        return "05_device_prims --ranks 2 ring --protocol ll --bytes 1K --trace " + file;
    });
}

}  // namespace
}  // namespace symm
