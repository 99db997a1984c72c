#include <gtest/gtest.h>

#include <fstream>

#include "common/tests/program_case.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

using namespace testing;

TEST(TuneProgram, WritesAndReadsTheTunersTable) {
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "table.txt";
    const Finished tuned =
        run_program("06_allreduce_tune --ranks 2 --mode thread --bytes 1K:4K " + file);
    EXPECT_EQ(tuned.exit_code, 0) << tuned.output;
    EXPECT_NE(tuned.output.find("Written to " + file), std::string::npos) << tuned.output;
    const Finished run = run_program("06_allreduce --bytes 1K", "SYMM_TUNING=" + file);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    std::ofstream(file) << "2 floating 1K\n";
    EXPECT_EQ(run_program("06_allreduce --bytes 1K", "SYMM_TUNING=" + file).exit_code, 2);
}

TEST(TuneProgram, SaysWhy) {
    // Ends as soon as the sizes have been accepted: to measure them all takes ten seconds.
    expect_runs("06_allreduce_tune", {{"table.txt",
                                       1,
                                       {"cuStreamCreate"},
                                       {"SYMM_EMU_FAIL=cuStreamCreate:1:CUDA_ERROR_UNKNOWN"}}});
}

TEST(TuneProgram, TakesRegularFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_tune --ranks 2 --bytes 1K " + file; });
}

}  // namespace
}  // namespace symm
