// The program as a user runs it, on good machines and on broken ones.

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/cli/cli.hpp"
#include "common/cuda/copy.hpp"
#include "common/sys/directory.hpp"
#include "common/tests/run_program.hpp"
#include "labs/02_access/forbidden.hpp"
#include "labs/02_access/tests/access_lab_test.hpp"

namespace symm {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two devices and little data where the case is about something else: it is quicker.
constexpr const char* kSmall = "SYMM_EMU_DEVICES=2 SYMM_EMU_P2P=1 ";

Finished run_lab(const std::string& arguments, const std::string& environment = "") {
    return run_program("02_access " + arguments, kSmall + environment);
}

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

TEST(Program, TellsTheWholeStory) {
    const Finished finished =
        run_program("02_access --size 4100 --owner 3", "SYMM_EMU_DEVICES=4 SYMM_EMU_P2P=1");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    for (const char* part :
         {"4 devices", "1. The peer matrix", "12 pairs tried", "12 carry every word",
          "right: read-only", "right: access taken away", "CUDA_ERROR_ILLEGAL_ADDRESS",
          "load-never-allowed:", "store-never-allowed:", "store-read-only:", "load-taken-away:",
          "store-taken-away:", "devices 0 1 2 3 find what was written before as it was",
          "5. One buffer of device 3", "all equal", "all checked and right"}) {
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
                                        std::pair("loads", "loads of a kernel read something else"),
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
        EXPECT_THAT(finished.output, HasSubstr("no two devices"));
        EXPECT_THAT(finished.output, HasSubstr("all equal"));
    }
}

TEST(Program, WritesTheMatricesAsTextJsonAndHeatMap) {
    const PrivateDirectory directory("symm-access-test");
    const auto json = directory.path() / "matrix.json";
    const auto svg = directory.path() / "matrix.svg";
    const Finished finished = run_lab("--size 4K --bandwidth --bytes 10004 --iterations 1 --json " +
                                      json.string() + " --svg " + svg.string());
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    for (const char* matrix : {"loads, pairs, one direction", "stores, pairs, both directions",
                               "copy engine, all at once to their neighbours",
                               "stores, all to all, in rounds", "load latency"}) {
        EXPECT_THAT(finished.output, HasSubstr(matrix));
        EXPECT_THAT(text_of(json), HasSubstr(matrix));
        EXPECT_THAT(text_of(svg), HasSubstr(matrix));
    }
    EXPECT_THAT(finished.output, HasSubstr("timings mean nothing"));
    EXPECT_THAT(text_of(json), HasSubstr("\"bytes\": 10004"));
    EXPECT_THAT(text_of(svg), HasSubstr("</svg>"));
}

TEST(Program, SaysAtOnceWhereItCannotWrite) {
    for (const char* option : {"--json", "--svg"}) {
        const Finished finished =
            run_lab(std::string("--size 4 --bandwidth --bytes 32 --iterations 1 ") + option +
                    " /nonexistent/file");
        EXPECT_EQ(finished.exit_code, 1) << finished.output;
        EXPECT_EQ(finished.output.find("error: /nonexistent/file cannot be written"), 0U)
            << finished.output;
    }
}

TEST(Program, MeasuresTheLeastThatItTakes) {
    const Finished finished =
        run_program("02_access --size 4 --bandwidth --bytes 48 --iterations 1",
                    "SYMM_EMU_DEVICES=3 SYMM_EMU_P2P=1");
    EXPECT_EQ(finished.exit_code, 0) << finished.output;
    EXPECT_THAT(finished.output, HasSubstr("every transfer's result was compared"));
    const std::string least_for_two = "--size 4 --bandwidth --bytes 32 --iterations 1";
    expect_refused_in_one_line(run_program("02_access " + least_for_two, "SYMM_EMU_DEVICES=3"),
                               least_for_two);
}

TEST(Program, LeavesFilesAloneWhereItFails) {
    const PrivateDirectory directory("symm-access-test");
    const auto json = directory.path() / "matrix.json";
    std::ofstream(json) << "of last week";
    const std::string arguments =
        "--size 4 --bandwidth --bytes 4K --iterations 1 --json " + json.string();
    // The last copies are those of the bandwidth.
    const Finished failed = run_lab(arguments, "SYMM_EMU_FAIL=cuMemcpyAsync:5:CUDA_ERROR_UNKNOWN");
    EXPECT_EQ(failed.exit_code, 1) << failed.output;
    EXPECT_THAT(failed.output, HasSubstr("measuring copy engine"));
    EXPECT_EQ(text_of(json), "of last week");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
    EXPECT_EQ(run_lab(arguments).exit_code, 0);
    EXPECT_THAT(text_of(json), HasSubstr("matrices"));
}

TEST(Program, HelpsWithEveryOption) {
    const Finished finished = run_lab("--help");
    EXPECT_EQ(finished.exit_code, 0);
    for (const char* option : {"--size", "--owner", "--bandwidth", "--bytes", "--iterations",
                               "--json", "--svg", "--driver", "SYMM_EMU_LOSSY"}) {
        EXPECT_THAT(finished.output, HasSubstr(option));
    }
    EXPECT_THAT(finished.output, Not(HasSubstr("forbidden-child")));
}

TEST(Program, RefusesBadUsageWithOneLine) {
    for (const char* arguments : {"--size 0",
                                  "--size 5",
                                  "--size 12Q",
                                  "--size",
                                  "--size 900M",
                                  "--owner 99",
                                  "--owner -1",
                                  "--owner x",
                                  "--bytes 4K",
                                  "--json a.json",
                                  "--svg a.svg",
                                  "--iterations 3",
                                  "--bytes 0",
                                  "--bandwidth --bytes 0",
                                  "--bandwidth --bytes 28",
                                  "--bandwidth --json same.json --svg ./same.json",
                                  "--bandwidth --iterations 0",
                                  "--bandwidth --bytes 3",
                                  "--bandwidth --bytes 35",
                                  "--bandwidth --bytes 900M",
                                  "--bogus",
                                  "--driver qemu",
                                  "--forbidden-child nothing"}) {
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
    for (const Forbidden kind : all_forbidden()) {
        const ForbiddenReport report = show_forbidden(binary_directory() + "/02_access", kind,
                                                      Deadline::after(std::chrono::minutes{2}));
        EXPECT_TRUE(report.as_expected())
            << name_of(kind) << ": " << report.first << "; " << report.next;
        EXPECT_EQ(report.child, "exited with code 0") << name_of(kind);
    }
}

TEST(ForbiddenKernel, HasANameForEveryWay) {
    for (const Forbidden kind : all_forbidden()) {
        EXPECT_EQ(forbidden_from(name_of(kind)), kind);
    }
    EXPECT_THROW(forbidden_from("sideways"), UsageError);
}

TEST(ForbiddenKernel, IsNotTakenForShownWhenItWasNot) {
    const ForbiddenReport fine{"the kernel ended well", "cuStreamCreate() succeeded", ""};
    EXPECT_FALSE(fine.as_expected());
    EXPECT_THROW(show_forbidden("/bin/true", Forbidden::kStoreReadOnly), std::runtime_error)
        << "a child that reports nothing";
    EXPECT_THROW(show_forbidden("/nonexistent/program", Forbidden::kStoreReadOnly),
                 std::system_error);
}

class BystanderTest : public AccessLabTest {};

TEST_F(BystanderTest, IsFoundChangedByEveryUserOnceAWordIs) {
    for (const int owner : {0, last_device()}) {
        const PeerMatrix matrix = PeerMatrix::query();
        const Bystander bystander(gpus(), matrix, owner, 4'100);
        EXPECT_THAT(bystander.complaints(), testing::IsEmpty());
        gpu(owner).make_current();
        const std::uint32_t other = 1;
        copy_to_device(bystander.buffer().base() + 4'096, &other, sizeof(other));
        const auto complaints = bystander.complaints();
        ASSERT_EQ(complaints.size(), matrix.users_of(owner).size());
        for (const std::string& complaint : complaints) {
            EXPECT_THAT(complaint, HasSubstr("1 of 1025 words wrong, first word 1024"));
        }
    }
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    expect_failure_on_full_disk("02_access --size 4K");
}

}  // namespace
}  // namespace symm
