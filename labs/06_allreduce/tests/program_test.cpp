#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "common/sys/process.hpp"
#include "common/tests/full_pipe.hpp"
#include "common/tests/program_case.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

using namespace testing;

TEST(Program, ChecksItsResults) {
    std::vector<ProgramCase> cases;
    for (const char* arguments :
         {"--bytes 64K", "--ranks 4 --mode thread --bytes 1K:16K", "--mode process --count 4097",
          "--ranks 3 --mode process --dtype bfloat16 --algo oneshot --count 1",
          "--ranks 2 --mode process --algo twoshot --bytes 256K --inplace",
          "--ranks 5 --mode thread --dtype bfloat16 --count 3", "--ranks 1 --bytes 8K",
          "--ranks 3 --collective reducescatter --bytes 1K:64K --dtype half",
          "--ranks 3 --collective allgather --bytes 1K:64K --inplace",
          "--ranks 2 --collective reducescatter --count 777 --inplace --op avg",
          "--ranks 8 --mode thread --bytes 32K", "--nodes 2 --ranks 4 --mode thread --bytes 1K"}) {
        cases.push_back({arguments, 0, {"All results are right."}});
    }
    expect_runs("06_allreduce", cases);
}

TEST(Program, RefusesBadUsage) {
    expect_refused(
        "06_allreduce",
        "--ranks 0 | --ranks 17 | --ranks -1 | --bytes 12Q | --bytes 4K:1K | --bytes 0 | "
        "--bytes 3 | --collective broadcast | --collective allgather --bytes 4 | "
        "--collective allgather --algo push | --bytes 7 | --bytes 2G | "
        "--bytes 2G --mode thread | --ranks 8 --mode thread --bytes 300M | --ranks two | "
        "--count 0x10 | --count 1.5 | --count 0 | --count -1 | --count 4611686018427387904 | "
        "--dtype int | --algo ring | --mode fiber | --driver cuda | --bytes 1K --count 3 | "
        "--algo sentinel --dtype int8 | --algo push --dtype int8 | --op mean | --unknown | "
        "extra | --nodes 2 --mode process | --nodes 0");
    expect_refused_in_one_line(run_program("06_allreduce --mode 'a\nb'"), "two lines");
    std::vector<ProgramCase> cases;
    for (const char* setting :
         {"SYMM_TIMEOUT=soon", "SYMM_TIMEOUT=0", "SYMM_TIMEOUT=-1", "SYMM_EMU_DEVICES=x",
          "SYMM_EMU_MEMORY=much", "SYMM_EMU_SMS=0", "SYMM_EMU_P2P=3", "SYMM_EMU_FAIL=cuMemMap",
          "SYMM_CUMEM_ENABLE=yes", "SYMM_FABRIC_ENABLE=2", "SYMM_CUMEM_HOST_ENABLE=-1",
          "SYMM_DEBUG=loud", "SYMM_LAUNCHER=mpi", "SYMM_TUNING=/dev/zero", "SYMM_TUNING=/tmp",
          "SYMM_TUNING=/nowhere"}) {
        cases.push_back({"--bytes 1K", 2, {"error: " + std::string(setting)}, {setting}});
    }
    cases.push_back(
        {"--bytes 1K", 2, {"error: SYMM_ALGO ring: choose one of auto, "}, {"SYMM_ALGO=ring"}});
    expect_runs("06_allreduce", cases);
}

TEST(Program, WritesAndReadsTheTunersTable) {
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

TEST(Program, DrawsWhatRan) {
#ifdef __clang__  // as in a build with sanitizers
    expect_refused("06_allreduce", "--show");
    return;
#endif
    const auto costs = [](int trips, int bytes) {
        return fmt::format("Trips, one after another: {}. Bytes over the busiest link: {}.\n",
                           trips, bytes);
    };
    expect_runs("06_allreduce",
                {{"--show", 0, {"oneshot: AllReduce of 16 floats on 4 ranks", costs(1, 128)}},
                 {"", 0, {"AllReduce of 4 floats on 2 ranks", costs(1, 32), "All results are"}},
                 {"--show --algo sentinel", 0, {costs(1, 64)}},
                 {"--show --algo push",
                  0,
                  {"trip 2: sums, stored into the receiver's gather slots of bank 0",
                   "    rank 3       12-15     12-15     12-15         .\n"
                   "    into out      4-15  0-3,8-15 0-7,12-15      0-11\n",
                   costs(2, 32)}},
                 {"--show --algo twoshot",
                  0,
                  {"trips 2 (requests) and 3: inputs, loaded from the sender's in",
                   "    adds up        0-3       4-7      8-11     12-15\n", costs(5, 68)}},
                 {"--show --algo chunks", 0, {"input slots", costs(5, 72)}},
                 {"--show --algo copy --bytes 256",
                  0,
                  {"trip 3: sums, copied by the copy engine into the receiver's sum slots",
                   costs(10, 148)}},
                 // Only the last rank has a part.
                 {"--show --ranks 2 --bytes 16 --algo twoshot",
                  0,
                  {"    adds up          .       0-3\n", "    rank 1         0-3         .\n"}}});
    expect_refused("06_allreduce",
                   "--show --ranks 9 | --show --ranks 1 | --show --bytes 18 | --show --bytes 1K | "
                   "--show --inplace | --json x");
}

TEST(Program, SaysWhy) {
    expect_runs("06_allreduce",
                {{"--help", 0, {"--dtype", "06_allreduce_bench"}},
                 {"--count 010", 0, {"40           10   oneshot"}},  // decimal
                 {"--bytes 1K", 0, {}, {"SYMM_TIMEOUT=", "SYMM_EMU_SMS="}},
                 {"--bytes 1M",
                  1,
                  {"cuMemCreate(size=", "CUDA_ERROR_OUT_OF_MEMORY"},
                  {"SYMM_EMU_FAIL=cuMemCreate:3:CUDA_ERROR_OUT_OF_MEMORY"}},
                 {"--nodes 2 --ranks 4 --bytes 1K", 0, {"1K          256 (emulated)   right"}},
                 {"--nodes 2 --ranks 4 --bytes 1K",
                  2,
                  {"06_allreduce_mpi"},
                  {"SYMM_LAUNCHER=", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"}},
                 {"--bytes 1K", 2, {"too little"}, {"SYMM_EMU_MEMORY=1M"}}});
    // Ends as soon as the sizes have been accepted: to measure them all takes ten seconds.
    expect_runs("06_allreduce_tune", {{"table.txt",
                                       1,
                                       {"cuStreamCreate"},
                                       {"SYMM_EMU_FAIL=cuStreamCreate:1:CUDA_ERROR_UNKNOWN"}}});
}

TEST(Program, SaysHowMuchWouldFit) {
    const std::string told = run_program("06_allreduce --bytes 31M", "SYMM_EMU_MEMORY=64M").output;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(told, found, std::regex("use --bytes (\\S+)"))) << told;
    expect_runs("06_allreduce", {{"--bytes 31M", 2, {}, {"SYMM_EMU_MEMORY=64M"}},
                                 {"--bytes " + found.str(1), 0, {}, {"SYMM_EMU_MEMORY=64M"}}});
}

TEST(Program, TakesRegularFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_tune --ranks 2 --bytes 1K " + file; });
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command :
         {"06_allreduce --bytes 1K --mode thread", "06_allreduce --bytes 1K --mode process",
          "06_allreduce --bytes 1K --nodes 2"}) {
        expect_failure_without_stdout(command);
    }
}

TEST(Program, EndsWithItsExitCodeWhereNobodyHearsWhy) {
    for (const auto& [arguments, code] :
         {std::pair("--count 0", 2), std::pair("--bytes 1K --mode process", 1),
          std::pair("--bytes 1K --mode thread", 1)}) {
        const Finished run =
            run_program(std::string("06_allreduce ") + arguments + " 2>/dev/full; exit $?",
                        code == 2 ? "" : "SYMM_EMU_FAIL=cuMemCreate:1:CUDA_ERROR_OUT_OF_MEMORY");
        EXPECT_EQ(run.exit_code, code) << arguments << run.output;
    }
}

/// The exit status of 06_allreduce with the arguments, if nobody reads one of its outputs.
int status_without_reader(std::vector<std::string> arguments, bool of_errors, int other) {
    const FullPipe pipe;
    Command command;
    command.arguments = std::move(arguments);
    command.arguments.insert(command.arguments.begin(), binary_directory() + "/06_allreduce");
    command.environment = {"SYMM_DRIVER=emulated", "SYMM_TIMEOUT=5", "SYMM_DEBUG=debug"};
    command.standard_output = of_errors ? other : pipe.writer.get();
    command.standard_error = of_errors ? pipe.writer.get() : other;
    Process program(command);
    const auto status = program.wait(Deadline::after(std::chrono::seconds(60)));
    EXPECT_TRUE(status) << "it did not end";
    return status ? status->code : -1;
}

TEST(Program, DoesNotWaitForAReader) {
    const TemporaryDirectory directory;
    for (const char* mode : {"process", "thread"}) {
        const auto errors = directory.path() / mode;
        const UniqueFd file(::open(errors.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        const std::vector<std::string> arguments{"--bytes", "1K", "--mode", mode};
        // Its messages to stderr are lost, but its work is done.
        EXPECT_EQ(status_without_reader(arguments, true, file.get()), 0) << mode;
        EXPECT_EQ(status_without_reader(arguments, false, file.get()), 1) << mode;
        EXPECT_NE(text_of(errors).find("cannot write to stdout"), std::string::npos) << mode;
    }
    EXPECT_EQ(status_without_reader({"--bytes", "nothing"}, true, -1), 2);
}

// Launchers start each rank in its own session. The kernel gives every session an equal share of
// the processors, so a waiting rank that only yields would starve the others.
TEST(Program, OfRanksInSessionsOfTheirOwnDoesNotStarve) {
    const std::string ranks =
        "for rank in 0 1 2 3; do RANK=$rank WORLD_SIZE=4 setsid -w " + binary_directory() +
        "/06_allreduce --driver emulated --count 1009 & ranks=\"$ranks $!\"; done; "
        "for rank in $ranks; do wait $rank || exit 1; done";
    for (int round = 0; round < 5; ++round) {
        Running run({"/bin/sh", "-c", ranks}, {"SYMM_LAUNCHER="});
        ASSERT_TRUE(run.end().success()) << "round " << round << run.output() << run.errors();
    }
}

}  // namespace
}  // namespace symm
