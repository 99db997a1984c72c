// The program as a user runs it, on good machines and on broken ones.

#include <gtest/gtest.h>

#include "common/tests/program_case.hpp"
#include "labs/02_access/forbidden.hpp"

namespace symm {
namespace {

using namespace testing;

// On two devices, to be quicker, unless the row says otherwise.
void expect_run(ProgramCase one) {
    one.environment.insert(one.environment.end(), {"SYMM_EMU_DEVICES=2", "SYMM_EMU_P2P=1"});
    expect_runs("02_access", {std::move(one)});
}

TEST(Program, ShowsEverythingOnAGoodMachine) {
    expect_runs("02_access",
                {{"--size 4100 --owner 3",
                  0,
                  {"4 devices", "1. The peer matrix", "12 pairs tried", "12 deliver every word",
                   "right: read-only", "right: access taken away",
                   "device 2 wrote its part and read all 1025 words: 0 wrong",
                   "load-never-allowed:", "CUDA_ERROR_ILLEGAL_ADDRESS", "store-never-allowed:",
                   "store-read-only:", "load-taken-away:", "store-taken-away:",
                   "this process is not affected: device 3 reads its data, all 1025",
                   "\nAll checks passed\n"},
                  {"SYMM_EMU_DEVICES=4", "SYMM_EMU_P2P=1"}}});
    expect_run({"--size 4K --bandwidth --bytes 10001",
                0,
                {"10016 per transfer, 2 times", "times mean nothing", "\neach  i + 1"}});
    expect_run({"--help", 0, {"SYMM_EMU_LOSSY", "--size", "--owner", "--bandwidth", "--bytes"}});
}

TEST(Program, NamesABrokenPairAndTheStepAndDoesNotUseIt) {
    for (const auto& [lossy, failure] :
         {std::pair("0:1", "device 0 -> memory of device 1: stores of a kernel are lost"),
          std::pair("1:0:stores", "device 1 -> memory of device 0: stores of a kernel are lost"),
          std::pair("1:0:loads", "device 1 -> memory of device 0: loads of a kernel return wrong"),
          std::pair("1:0:copies", "device 1 -> memory of device 0: copies are lost")}) {
        expect_run({"--size 4100 --bandwidth",
                    0,
                    {std::string("BROKEN ") + failure, ": 1025 of 1025 words",
                     "2 pairs tried with stores, loads and copies: 1", "EXCLUDED",
                     "1 broken pair(s) not used"},
                    {std::string("SYMM_EMU_LOSSY=") + lossy}});
    }
}

TEST(Program, WorksWithoutPeers) {
    for (const char* machine : {"SYMM_EMU_P2P=0", "SYMM_EMU_DEVICES=1"}) {
        expect_run({"--size 4K --bandwidth",
                    0,
                    {"0 pairs tried", "6. Bandwidth and latency", "All checks passed"},
                    {machine}});
    }
}

TEST(Program, RefusesBadUsageWithOneLine) {
    expect_refused("02_access",
                   "--size 0 | --size 12Q | --size | --owner 99 | --owner -1 | --owner x | "
                   "--bytes 4K | --bytes 0 | --bandwidth --bytes 0 | --bogus | --driver qemu | "
                   "--forbidden-child nothing");
}

TEST(Program, NamesTheCallThatFails) {
    for (const std::string function :
         {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemGetAccess", "cuDeviceCanAccessPeer",
          "cuDeviceGetP2PAttribute", "cuStreamCreate", "cuMemcpyAsync", "cuMemHostAlloc"}) {
        expect_run({"--size 4K",
                    1,
                    {"error: " + function},
                    {"SYMM_EMU_FAIL=" + function + ":2:CUDA_ERROR_UNKNOWN"}});
    }
    // In destructors.
    for (const std::string function : {"cuStreamDestroy", "cuEventDestroy", "cuMemFreeHost"}) {
        expect_run({"--size 4K --bandwidth",
                    1,
                    {function, "CUDA_ERROR_UNKNOWN"},
                    {"SYMM_EMU_FAIL=" + function + ":1:CUDA_ERROR_UNKNOWN"}});
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
    expect_run({"--forbidden-child load-never-allowed",
                1,
                {},
                {"SYMM_EMU_FAIL=cuStreamQuery:1:CUDA_ERROR_UNKNOWN"}});
}

}  // namespace
}  // namespace symm
