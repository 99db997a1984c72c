// The program as a user runs it, on good machines and on broken ones.

#include <gmock/gmock.h>

#include "common/tests/run_program.hpp"
#include "labs/02_access/forbidden.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

using ::testing::HasSubstr;
using testing::Not;

// Two devices and little data, to be quicker where the case is about something else.
constexpr const char* kSmall = "SYMM_EMU_DEVICES=2 SYMM_EMU_P2P=1 ";

Finished run_lab(const std::string& arguments, const std::string& environment = "") {
    return run_program("02_access " + arguments, kSmall + environment);
}

TEST(Program, TellsTheWholeStory) {
    const Finished finished =
        run_program("02_access --size 4100 --owner 3", "SYMM_EMU_DEVICES=4 SYMM_EMU_P2P=1");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    for (const char* part :
         {"4 devices", "1. The peer matrix", "12 pairs tried", "12 deliver every word",
          "right: read-only", "right: access taken away", "CUDA_ERROR_ILLEGAL_ADDRESS",
          "load-never-allowed:", "store-never-allowed:", "store-read-only:", "load-taken-away:",
          "store-taken-away:", "this process is not affected: device 3 reads its data, all 1025",
          "device 2 wrote its part and read all 1025 words: 0 wrong", "All checks passed"}) {
        EXPECT_THAT(finished.output, HasSubstr(part));
    }
    EXPECT_THAT(finished.output, Not(HasSubstr("WRONG")));
}

TEST(Program, NamesABrokenPairAndDoesNotUseIt) {
    for (const auto& [lossy, broken] : {std::pair("1:0", "device 1 -> memory of device 0"),
                                        std::pair("0:1", "device 0 -> memory of device 1")}) {
        const Finished finished =
            run_lab("--size 4K --bandwidth", std::string("SYMM_EMU_LOSSY=") + lossy);
        EXPECT_EQ(finished.exit_code, 0) << finished.output;
        EXPECT_THAT(finished.output, HasSubstr(std::string("BROKEN ") + broken));
        EXPECT_THAT(finished.output, HasSubstr("2 pairs tried with stores, loads and copies: 1"));
        EXPECT_THAT(finished.output, HasSubstr("EXCLUDED"));
        EXPECT_THAT(finished.output, HasSubstr("1 broken pair(s) not used"));
    }
}

TEST(Program, NamesTheStepInWhichAPairBreaks) {
    for (const auto& [lost, failure] : {std::pair("stores", "stores of a kernel are lost"),
                                        std::pair("loads", "loads of a kernel return wrong data"),
                                        std::pair("copies", "copies are lost")}) {
        const Finished finished = run_lab("--size 4100", std::string("SYMM_EMU_LOSSY=1:0:") + lost);
        EXPECT_EQ(finished.exit_code, 0) << finished.output;
        EXPECT_THAT(finished.output, HasSubstr("BROKEN device 1 -> memory of device 0: " +
                                               std::string(failure) + ": 1025 of 1025 words"));
        EXPECT_THAT(finished.output, HasSubstr("1 broken pair(s) not used"));
    }
}

TEST(Program, WorksWithoutPeers) {
    for (const char* machine : {"SYMM_EMU_P2P=0", "SYMM_EMU_DEVICES=1"}) {
        const Finished finished = run_lab("--size 4K --bandwidth", machine);
        EXPECT_EQ(finished.exit_code, 0) << finished.output;
        EXPECT_THAT(finished.output, HasSubstr("0 pairs tried"));
        EXPECT_THAT(finished.output, HasSubstr("5. Bandwidth and latency"));
    }
}

TEST(Program, MeasuresEveryPairAndAllAtOnce) {
    const Finished finished = run_lab("--size 4K --bandwidth --bytes 10001");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    EXPECT_THAT(finished.output, HasSubstr("10016 per transfer, 2 times"));
    EXPECT_THAT(finished.output, HasSubstr("times mean nothing"));
    for (const char* line :
         {"0 +0 +- +- +- +- +[0-9]+", "0 +1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+",
          "1 +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+",
          "each +i \\+ 1 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\n"}) {
        EXPECT_THAT(finished.output, testing::ContainsRegex(line));
    }
}

TEST(Program, SaysWhereTheMemoryIsTooSmall) {
    const Finished finished = run_lab("--size 4M", "SYMM_EMU_MEMORY=2M");
    EXPECT_EQ(finished.exit_code, 1) << finished.output;
    EXPECT_THAT(finished.output, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST(Program, HelpsWithEveryOption) {
    const Finished finished = run_lab("--help");
    EXPECT_EQ(finished.exit_code, 0);
    for (const char* option :
         {"--size", "--owner", "--bandwidth", "--bytes", "--driver", "SYMM_EMU_LOSSY"}) {
        EXPECT_THAT(finished.output, HasSubstr(option));
    }
    EXPECT_THAT(finished.output, Not(HasSubstr("forbidden-child")));
}

TEST(Program, RefusesBadUsageWithOneLine) {
    for (const char* arguments : {"--size 0", "--size 12Q", "--size", "--owner 99", "--owner -1",
                                  "--owner x", "--bytes 4K", "--bytes 0", "--bandwidth --bytes 0",
                                  "--bogus", "--driver qemu", "--forbidden-child nothing"}) {
        expect_refused_in_one_line(run_lab(arguments), arguments);
    }
}

TEST(Program, NamesTheCallThatFails) {
    for (const char* function :
         {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemGetAccess", "cuDeviceCanAccessPeer",
          "cuDeviceGetP2PAttribute", "cuStreamCreate", "cuMemcpyAsync", "cuMemHostAlloc"}) {
        const Finished finished = run_lab(
            "--size 4K", std::string("SYMM_EMU_FAIL=") + function + ":2:CUDA_ERROR_UNKNOWN");
        EXPECT_EQ(finished.exit_code, 1) << function << "\n" << finished.output;
        const std::size_t error = finished.output.find(std::string("error: ") + function);
        EXPECT_NE(error, std::string::npos) << function << "\n" << finished.output;
    }
}

TEST(ForbiddenKernel, LosesItsContextAndOnlyItsOwn) {
    for (const Forbidden& kind : kForbidden) {
        EXPECT_TRUE(show_forbidden(binary_directory() + "/02_access", kind)) << kind.name;
    }
}

TEST(ForbiddenKernel, IsNotTakenForShownWhenItWasNot) {
    EXPECT_FALSE(show_forbidden("/bin/false", kForbidden[0]));
    EXPECT_THROW(show_forbidden("/nonexistent/program", kForbidden[0]), std::system_error);
    // An error other than a lost context.
    const Finished finished = run_lab("--forbidden-child load-never-allowed",
                                      "SYMM_EMU_FAIL=cuStreamQuery:1:CUDA_ERROR_UNKNOWN");
    EXPECT_EQ(finished.exit_code, 1) << finished.output;
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    expect_failure_without_stdout("02_access --size 4K");
}

}  // namespace
}  // namespace symm
