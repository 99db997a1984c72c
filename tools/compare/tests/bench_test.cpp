// The benchmark as a program, on emulated devices. bench_json.cmake reads its JSON.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/sys/file.hpp"
#include "common/tests/program_case.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

using namespace testing;

// The positions of a row's columns.
enum Column { kSize, kCount, kType, kOp, kOutTime, kOutWrong = 7, kInTime, kInWrong = 11, kNccl };
constexpr std::size_t kColumns = 19;

struct Benched {
    std::string output;
    std::vector<std::vector<std::string>> rows;
};

/// Runs the benchmark, which must succeed.
Benched bench(const std::string& arguments) {
    const Finished run = run_program("06_allreduce_bench " + arguments);
    EXPECT_EQ(run.exit_code, 0) << arguments << "\n" << run.output;
    Benched benched{run.output, {}};
    std::istringstream lines(run.output);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 137U) << line;
        if (line.starts_with("#")) {
            continue;
        }
        std::istringstream words(line);
        auto& row = benched.rows.emplace_back();
        for (std::string word; words >> word;) {
            row.push_back(word);
        }
        EXPECT_EQ(row.size(), kColumns) << line;
        row.resize(kColumns);
    }
    return benched;
}

using Cells = std::vector<std::string>;

Cells column(const Benched& benched, Column number) {
    Cells cells;
    for (const auto& row : benched.rows) {
        cells.push_back(row[number]);
    }
    return cells;
}

TEST(BenchProgram, PrintsTheColumnsOfNcclTests) {
    const Benched benched = bench("");
    EXPECT_NE(benched.output.find("size      count     type redop   time algbw busbw #wrong   time "
                                  "algbw busbw #wrong"),
              std::string::npos)
        << benched.output;
    EXPECT_EQ(column(benched, kSize), (Cells{"1024", "4096", "16384", "65536"}));
    EXPECT_EQ(column(benched, kCount), (Cells{"256", "1024", "4096", "16384"}));
    for (const auto& row : benched.rows) {
        EXPECT_EQ(row[kType], "float");
        EXPECT_EQ(row[kOp], "sum");
        EXPECT_GT(std::stod(row[kOutTime]), 0);
        EXPECT_GT(std::stod(row[kInTime]), 0);
        EXPECT_EQ(row[kOutWrong], "0");
        EXPECT_EQ(row[kInWrong], "0");
    }
    EXPECT_EQ(benched.rows.front()[17], "oneshot");
    EXPECT_EQ(benched.rows.back()[17], "sentinel");
}

TEST(BenchProgram, ComparesNoEmulatedTimes) {
    const Benched benched = bench("-e 1K");
    EXPECT_NE(benched.output.find("not performance figures"), std::string::npos) << benched.output;
    for (std::size_t i = kNccl; i <= kNccl + 4; ++i) {
        EXPECT_EQ(benched.rows.at(0)[i], "-");
    }
}

TEST(BenchProgram, MeasuresTheSizesThatAreAskedFor) {
    for (const auto& [arguments, sizes] : std::vector<std::pair<std::string, Cells>>{
             {"-b 1K -e 9K -f 3", {"1024", "3072", "9216"}},
             {"--minbytes 16 --maxbytes 64 --stepfactor 2", {"16", "32", "64"}},
             {"-b 17 -e 17 -d int64", {"16"}},  // whole elements
             {"-e 32", {"32"}},                 // below the default smallest
             {"-b 256K", {"262144"}},
             {"-G 2 -w 1 -e 4K", {"1024", "4096"}},
             {"--benchmark_filter=/4K/", {"4096"}},
             {"--benchmark_repetitions=3 -e 1K", {"1024", "1024", "1024"}}}) {
        EXPECT_EQ(column(bench(arguments + " -n 1"), kSize), sizes) << arguments;
    }
}

TEST(BenchProgram, HasARankForEachGpu) {
    expect_runs("06_allreduce_bench", {{"-e 1K -n 1 -g 1", 0, {"# 1 ranks,"}},
                                       {"-e 1K -n 1 -g 6", 0, {"# 6 ranks,"}},
                                       {"-e 1K -n 1", 0, {"# 2 ranks,"}}});
}

TEST(BenchProgram, MeasuresAHalf) {
    for (const char* half : {"reducescatter", "allgather"}) {
        const Benched benched =
            bench(std::string("-g 3 -b 30 -e 128K -f 64 -n 2 -d half --collective ") + half);
        EXPECT_EQ(column(benched, kSize), (Cells{"30", "1920", "122880"})) << benched.output;
        EXPECT_EQ(column(benched, kCount), (Cells{"5", "320", "20480"}));
        EXPECT_EQ(column(benched, kOutWrong), Cells(3, "0"));
        EXPECT_EQ(column(benched, kInWrong), Cells(3, "0"));
        EXPECT_EQ(benched.rows.back()[17], "twoshot");
    }
}

TEST(BenchProgram, SaysWhy) {
    expect_runs(
        "06_allreduce_bench",
        {{"--help", 0, {"-b,--minbytes", "20 ms", "-G,--cudagraph", "--benchmark_"}},
         {"--benchmark_list_tests -e 1K", 0, {"allreduce/float/sum/1K"}},
         {"-e 1K -G 1",  // in the middle of a size
          1,
          {"error: ", "CUDA_ERROR_INVALID_VALUE"},
          {"SYMM_EMU_FAIL=cuStreamEndCapture:2:CUDA_ERROR_INVALID_VALUE", "SYMM_TIMEOUT=5"}}});
    expect_refused(
        "06_allreduce_bench",
        "-b 3 | -b 4 -g 2 --collective allgather | --collective broadcast -g 2 -r 2 | -b 12Q | "
        "-b 2K -e 1K | -e 3G | -b 0x10 -e 1K | -b 0 | -e 0 | -f 1 | -d int | "
        "-d all | -o mean | -n 0 | -w 0 | -G -1 | -g 0 | -g 17 | --rounds 0 | "
        "--json /no/such/folder/x.json | --benchmark_no_such_flag | "
        "--driver cuda | -x | extra");
    EXPECT_EQ(run_program("06_allreduce_bench --benchmark_filter=zzz").exit_code, 2);
}

TEST(BenchProgram, LosesNoFile) {
    const TemporaryDirectory directory;
    const std::string old = directory.path() / "old.json";
    const std::string link = directory.path() / "link.json";
    std::ofstream(old) << "what was there";
    const std::string bench = "06_allreduce_bench -b 1K -e 1K -n 1 --json ";
    EXPECT_NE(run_program(bench + old, "SYMM_EMU_P2P=0").exit_code, 0);
    EXPECT_EQ(read_file(old, "old.json"), "what was there");
    std::filesystem::create_symlink("/nonexistent/file", link);
    EXPECT_EQ(run_program(bench + link).exit_code, 2);
}

TEST(BenchProgram, WritesRegularFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_bench -b 1K -e 1K --json " + file; });
}

}  // namespace
}  // namespace symm
