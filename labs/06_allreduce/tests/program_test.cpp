#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <regex>

#include "common/sys/descriptor.hpp"
#include "common/tests/program_case.hpp"

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
          "--ranks 8 --mode thread --bytes 32K", "--ladder --ranks 3 --bytes 4:1K --factor 16",
          "--nodes 2 --ranks 4 --mode thread --bytes 1K"}) {
        cases.push_back({arguments, 0, {"All results are right."}});
    }
    expect_runs("06_allreduce", cases);
}

TEST(Program, RefusesBadUsage) {
    expect_refused(
        "06_allreduce",
        "--ranks 0 | --ranks 17 | --ranks -1 | --bytes 12Q | --bytes 4K:1K | --bytes 0 | "
        "--bytes 3 | --collective broadcast --root 2 | --collective allgather --bytes 4 | "
        "--collective allgather --algo push | --bytes 7 | --bytes 2G | "
        "--bytes 2G --mode thread | --ranks 8 --mode thread --bytes 300M | --ranks two | "
        "--count 0x10 | --count 1.5 | --count 0 | --count -1 | --count 4611686018427387904 | "
        "--dtype int | --algo ring | --mode fiber | --driver cuda | --bytes 1K --count 3 | "
        "--algo sentinel --dtype int8 | --algo push --dtype int8 | --op mean | --unknown | "
        "extra | --nodes 2 --mode process | --nodes 0 | --rung 3 | --ladder --rung 10 | "
        "--ladder --bytes 8M | --ladder --mode thread | --json /tmp/x.json");
    const Finished of_two_lines = run_program("06_allreduce --mode 'a\nb'");
    EXPECT_EQ(of_two_lines.exit_code, 2);
    EXPECT_EQ(std::ranges::count(of_two_lines.output, '\n'), 1) << of_two_lines.output;
    std::vector<ProgramCase> cases;
    for (const char* setting :
         {"SYMM_TIMEOUT=soon", "SYMM_EMU_P2P=3", "SYMM_EMU_FAIL=cuMemMap", "SYMM_TUNING=/dev/zero",
          "SYMM_TUNING=/tmp", "SYMM_TUNING=/nowhere"}) {
        cases.push_back({"--bytes 1K", 2, {"error: " + std::string(setting)}, {setting}});
    }
    cases.push_back(
        {"--bytes 1K", 2, {"error: SYMM_ALGO ring: choose one of auto, "}, {"SYMM_ALGO=ring"}});
    expect_runs("06_allreduce", cases);
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
                 {"--show --algo chunks",
                  0,
                  {"input slots", "    rank 0 to 3, 1 to 0, 2 to 1, 3 to 2\n", costs(9, 88)}},
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
                   "--show --inplace | --show --algo multicast | --json x");
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
}

TEST(Program, SaysHowMuchWouldFit) {
    const std::string told = run_program("06_allreduce --bytes 31M", "SYMM_EMU_MEMORY=64M").output;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(told, found, std::regex("use --bytes (\\S+)"))) << told;
    expect_runs("06_allreduce", {{"--bytes 31M", 2, {}, {"SYMM_EMU_MEMORY=64M"}},
                                 {"--bytes " + found.str(1), 0, {}, {"SYMM_EMU_MEMORY=64M"}}});
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

/// A full pipe that nobody reads. Writes to it block.
struct FullPipe {
    FullPipe() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        reader = UniqueFd(ends[0]);
        writer = UniqueFd(ends[1]);
        while (::write(writer.get(), "full", 1) == 1) {
        }
        ::fcntl(writer.get(), F_SETFL, 0);
    }

    UniqueFd reader;
    UniqueFd writer;
};

TEST(Program, DoesNotWaitForAReader) {
    const auto run = [](const std::string& arguments, const char* redirection) {
        const FullPipe pipe;
        return run_program(fmt::format("06_allreduce {} {}/proc/{}/fd/{}; exit $?", arguments,
                                       redirection, ::getpid(), pipe.writer.get()),
                           "SYMM_TIMEOUT=5 SYMM_DEBUG=debug", 60);
    };
    for (const std::string mode : {"process", "thread"}) {
        // Its messages to stderr are lost, but its work is done.
        EXPECT_EQ(run("--bytes 1K --mode " + mode, "2>").exit_code, 0) << mode;
        const Finished unread = run("--bytes 1K --mode " + mode, "2>&1 >");
        EXPECT_EQ(unread.exit_code, 1) << mode;
        EXPECT_NE(unread.output.find("cannot write to stdout"), std::string::npos) << mode;
    }
    EXPECT_EQ(run("--bytes nothing", "2>").exit_code, 2);
}

}  // namespace
}  // namespace symm
