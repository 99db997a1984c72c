// The benchmark as a program, on emulated devices. bench_json.cmake reads its JSON.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/sys/file.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

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

std::vector<std::string> column(const Benched& benched, Column number) {
    std::vector<std::string> cells;
    for (const auto& row : benched.rows) {
        cells.push_back(row[number]);
    }
    return cells;
}

using Cells = std::vector<std::string>;

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
    for (std::size_t i = kNccl; i < kNccl + 5; ++i) {
        EXPECT_EQ(benched.rows.at(0)[i], "-");
    }
}

TEST(BenchProgram, StepsByBytesOrByAFactor) {
    EXPECT_EQ(column(bench("-b 8 -e 47 -i 16 -d half -n 1"), kSize), (Cells{"8", "24", "40"}));
    EXPECT_EQ(column(bench("-b 1K -e 9K -f 3 -n 1"), kSize), (Cells{"1024", "3072", "9216"}));
    EXPECT_EQ(column(bench("--minbytes 16 --maxbytes 32 --stepbytes 8 --iters 1"), kSize),
              (Cells{"16", "24", "32"}));
}

TEST(BenchProgram, RoundsSizesDownToWholeElements) {
    const Benched benched = bench("-b 17 -e 17 -d int64 -n 1");
    EXPECT_EQ(column(benched, kSize), Cells{"16"});
    EXPECT_EQ(column(benched, kCount), Cells{"2"});
}

TEST(BenchProgram, TakesALargestSizeBelowTheDefaultSmallest) {
    EXPECT_EQ(column(bench("-e 32 -n 1"), kSize), Cells{"32"});
    EXPECT_EQ(column(bench("-b 256K -n 1"), kSize), Cells{"262144"});
}

TEST(BenchProgram, HasARankForEachGpuOfEachThread) {
    for (const auto& [arguments, ranks] :
         {std::pair("-t 3 -g 2", "# 6 ranks,"), std::pair("-t 1", "# 1 ranks,"),
          std::pair("-g 4", "# 4 ranks,"), std::pair("", "# 2 ranks,")}) {
        const Benched benched = bench(std::string(arguments) + " -e 1K -n 1");
        EXPECT_NE(benched.output.find(ranks), std::string::npos) << benched.output;
    }
}

TEST(BenchProgram, LaunchesGraphs) {
    EXPECT_EQ(bench("-G 2 -n 3 -w 1 -e 4K").rows.size(), 2U);
}

TEST(BenchProgram, MeasuresAHalf) {
    for (const char* half : {"reducescatter", "allgather"}) {
        const Benched benched =
            bench(std::string("-t 3 -b 30 -e 128K -f 64 -n 2 -d half --collective ") + half);
        EXPECT_EQ(column(benched, kSize), (Cells{"30", "1920", "122880"})) << benched.output;
        EXPECT_EQ(column(benched, kCount), (Cells{"5", "320", "20480"}));
        EXPECT_EQ(column(benched, kOutWrong), Cells(3, "0"));
        EXPECT_EQ(column(benched, kInWrong), Cells(3, "0"));
        EXPECT_EQ(benched.rows.back()[17], "twoshot");
    }
}

TEST(BenchProgram, EndsWithAnErrorInTheMiddleOfASize) {
    const Finished run =
        run_program("06_allreduce_bench -e 1K -G 1",
                    "SYMM_EMU_FAIL=cuStreamEndCapture:2:CUDA_ERROR_INVALID_VALUE SYMM_TIMEOUT=5");
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("CUDA_ERROR_INVALID_VALUE"), std::string::npos) << run.output;
}

TEST(BenchProgram, DoesNotCheckIfAskedNotTo) {
    const Benched benched = bench("-e 1K -c 0");
    EXPECT_EQ(benched.rows.at(0)[kOutWrong], "-");
    EXPECT_EQ(benched.rows.at(0)[kInWrong], "-");
}

TEST(BenchProgram, TakesGoogleBenchmarksOptions) {
    EXPECT_EQ(column(bench("--benchmark_filter=/4K/ -n 1"), kSize), Cells{"4096"});
    EXPECT_EQ(bench("--benchmark_repetitions=3 -e 1K -n 1").rows.size(), 3U);
    const Finished list = run_program("06_allreduce_bench --benchmark_list_tests -e 1K");
    EXPECT_EQ(list.exit_code, 0);
    EXPECT_EQ(list.output.find("allreduce/float/sum/1K"), 0U) << list.output;
    const Finished none = run_program("06_allreduce_bench --benchmark_filter=zzz");
    EXPECT_EQ(none.exit_code, 2) << none.output;
}

TEST(BenchProgram, RefusesBadUsageInOneLine) {
    for (const char* arguments : {"-b 3",
                                  "-b 4 -t 2 --collective allgather",
                                  "--collective broadcast",
                                  "-b 12Q",
                                  "-b 2K -e 1K",
                                  "-e 3G",
                                  "-b 0x10 -e 1K",
                                  "-b 0",
                                  "-e 0",
                                  "-i 0",
                                  "-i 8 -f 2",
                                  "-i 1 -e 64M",
                                  "-f 1",
                                  "-d int",
                                  "-d all",
                                  "-o mean",
                                  "-n 0",
                                  "-w 0",
                                  "-c 2",
                                  "-G -1",
                                  "-t 0",
                                  "-g 17",
                                  "-t 5 -g 5",
                                  "--rounds 0",
                                  "--json /no/such/folder/x.json",
                                  "--benchmark_no_such_flag",
                                  "--driver cuda",
                                  "-x",
                                  "extra"}) {
        expect_refused_in_one_line(run_program(std::string("06_allreduce_bench ") + arguments),
                                   arguments);
    }
}

TEST(BenchProgram, TeachesWithHelp) {
    const Finished run = run_program("06_allreduce_bench --help");
    EXPECT_EQ(run.exit_code, 0);
    for (const char* text : {"-b,--minbytes", "-G,--cudagraph", "20 ms", "--benchmark_"}) {
        EXPECT_NE(run.output.find(text), std::string::npos) << text;
    }
}

TEST(BenchProgram, FailsWhereItsOutputCannotBeWritten) {
    expect_failure_without_stdout("06_allreduce_bench -e 1K -n 1");
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
