#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "common/sys/process.hpp"
#include "common/tests/full_pipe.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/special_files.hpp"
#include "common/tests/temporary_directory.hpp"

namespace symm {
namespace {

class Checked : public ::testing::TestWithParam<const char*> {};

TEST_P(Checked, AndRight) {
    const Finished run = run_program(std::string("06_allreduce ") + GetParam());
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("All results are right."), std::string::npos) << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Program, Checked,
    ::testing::Values("--bytes 64K", "--ranks 4 --mode thread --bytes 1K:16K",
                      "--mode process --count 4097",
                      "--ranks 3 --mode process --dtype bfloat16 --algo oneshot --count 1",
                      "--ranks 2 --mode process --algo twoshot --bytes 256K --inplace",
                      "--ranks 5 --mode thread --dtype bfloat16 --count 3", "--ranks 1 --bytes 8K",
                      "--mode thread --bytes 64K",
                      "--ranks 3 --collective reducescatter --bytes 1K:64K --dtype half",
                      "--ranks 3 --collective allgather --bytes 1K:64K --inplace",
                      "--ranks 2 --collective reducescatter --count 777 --inplace --op avg",
                      "--ranks 8 --mode thread --bytes 32K",
                      "--nodes 2 --ranks 4 --mode thread --engine host --bytes 1K"));

class Refused : public ::testing::TestWithParam<const char*> {};

TEST_P(Refused, WithOneLineThatSaysWhatToType) {
    const Finished run = run_program(std::string("06_allreduce ") + GetParam());
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Program, Refused,
    ::testing::Values("--ranks 0", "--ranks 17", "--ranks -1", "--bytes 12Q", "--bytes 4K:1K",
                      "--bytes 0", "--bytes 3", "--collective broadcast",
                      "--collective allgather --bytes 4", "--collective allgather --algo push",
                      "--bytes 7", "--bytes 2G", "--bytes 2G --mode thread",
                      "--ranks 8 --mode thread --bytes 300M", "--ranks two", "--mode 'a\nb'",
                      "--count 0x10", "--count 1.5", "--count 0", "--count -1",
                      "--count 4611686018427387904", "--dtype int", "--algo ring", "--mode fiber",
                      "--driver cuda", "--bytes 1K --count 3", "--algo sentinel --dtype int8",
                      "--algo push --dtype int8", "--op mean", "--unknown", "extra",
                      "--nodes 2 --mode process", "--engine host", "--nodes 1 --engine nccl"));

TEST(Program, RefusesNonsenseInTheEnvironment) {
    for (const char* setting :
         {"SYMM_DRIVER=foo", "SYMM_TIMEOUT=soon", "SYMM_TIMEOUT=0", "SYMM_TIMEOUT=-1",
          "SYMM_EMU_DEVICES=x", "SYMM_EMU_MEMORY=much", "SYMM_EMU_SMS=0", "SYMM_EMU_P2P=3",
          "SYMM_EMU_FAIL=cuMemMap", "SYMM_CUMEM_ENABLE=yes", "SYMM_FABRIC_ENABLE=2",
          "SYMM_CUMEM_HOST_ENABLE=-1", "SYMM_DEBUG=loud", "SYMM_LAUNCHER=mpi"}) {
        const Finished run = run_program("06_allreduce --bytes 1K", setting);
        EXPECT_EQ(run.exit_code, 2) << setting << run.output;
        EXPECT_EQ(run.output.find("error: " + std::string(setting)), 0U) << run.output;
        EXPECT_EQ(run.output.find('\n'), run.output.size() - 1) << run.output;
    }
    EXPECT_EQ(run_program("06_allreduce --bytes 1K", "SYMM_TIMEOUT= SYMM_EMU_SMS=").exit_code, 0);
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

TEST(Program, TunesSizesThatFitByDefault) {
    const TemporaryDirectory directory;
    // Ends as soon as the sizes have been accepted: to measure them all takes ten seconds.
    const Finished run =
        run_program("06_allreduce_tune " + (directory.path() / "table.txt").string(),
                    "SYMM_EMU_FAIL=cuStreamCreate:1:CUDA_ERROR_UNKNOWN");
    EXPECT_NE(run.output.find("cuStreamCreate"), std::string::npos) << run.output;
}

TEST(Program, UnderALauncherNamesTheProgramForMachines) {
    const Finished run =
        run_program("06_allreduce --nodes 2 --ranks 4 --bytes 1K",
                    "SYMM_LAUNCHER= OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_NE(run.output.find("06_allreduce_mpi"), std::string::npos) << run.output;
}

TEST(Program, TakesNumbersInDecimal) {
    const Finished run = run_program("06_allreduce --count 010");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find("40           10   oneshot"), std::string::npos) << run.output;
}

TEST(Program, SaysWhenMemoryRunsOut) {
    const Finished run = run_program("06_allreduce --bytes 1M",
                                     "SYMM_EMU_FAIL=cuMemCreate:3:CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_NE(run.output.find("cuMemCreate(size="), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << run.output;
}

TEST(Program, SaysHowMuchWouldFit) {
    const auto refused = [](const char* size, const char* memory) {
        const Finished run = run_program(std::string("06_allreduce --bytes ") + size,
                                         std::string("SYMM_EMU_MEMORY=") + memory);
        EXPECT_EQ(run.exit_code, 2) << run.output;
        return run.output;
    };
    const std::string told = refused("31M", "64M");
    const std::string say = "use --bytes ";
    const std::size_t at = told.find(say);
    ASSERT_NE(at, std::string::npos) << told;
    const std::string most =
        told.substr(at + say.size(), told.find(' ', at + say.size()) - at - say.size());
    const Finished run = run_program("06_allreduce --bytes " + most, "SYMM_EMU_MEMORY=64M");
    EXPECT_EQ(run.exit_code, 0) << most << run.output;
    EXPECT_NE(refused("1K", "1M").find("too little"), std::string::npos);
}

TEST(Program, TeachesWithHelp) {
    const Finished run = run_program("06_allreduce --help");
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_NE(run.output.find("--dtype"), std::string::npos);
    EXPECT_NE(run.output.find("06_allreduce_bench"), std::string::npos);
}

TEST(Program, TakesRegularFilesOnly) {
    expect_regular_files_only(
        [](const std::string& file) { return "06_allreduce_tune --ranks 2 --bytes 1K " + file; });
    for (const char* file : {"/dev/zero", "/tmp", "/nowhere"}) {
        const std::string variable = std::string("SYMM_TUNING=") + file;
        const Finished run = run_program("06_allreduce --bytes 1K", variable, 20);
        EXPECT_EQ(run.exit_code, 2) << run.output;
        EXPECT_EQ(run.output.find("error: " + variable), 0U) << run.output;
    }
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
    for (const char* command :
         {"06_allreduce --bytes 1K --mode thread", "06_allreduce --bytes 1K --mode process",
          "06_allreduce --bytes 1K --nodes 2", "06_allreduce_model"}) {
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

// Its messages to stderr are lost, but its work is done.
TEST(Program, DoesNotWaitForAReaderOfItsDiagnostics) {
    for (const auto& [arguments, code] :
         {std::pair(std::vector<std::string>{"--bytes", "1K", "--mode", "process"}, 0),
          std::pair(std::vector<std::string>{"--bytes", "1K", "--mode", "thread"}, 0),
          std::pair(std::vector<std::string>{"--bytes", "nothing"}, 2)}) {
        const FullPipe pipe;
        const UniqueFd output(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        Command command;
        command.arguments = arguments;
        command.arguments.insert(command.arguments.begin(), binary_directory() + "/06_allreduce");
        command.environment = {"SYMM_DRIVER=emulated", "SYMM_TIMEOUT=4", "SYMM_DEBUG=debug"};
        command.standard_output = output.get();
        command.standard_error = pipe.writer.get();
        Process program(command);
        const auto status = program.wait(Deadline::after(std::chrono::seconds(60)));
        ASSERT_TRUE(status) << arguments.back();
        EXPECT_EQ(status->code, code) << arguments.back();
    }
}

TEST(Program, DoesNotWaitForAReaderForEver) {
    for (const char* mode : {"process", "thread"}) {
        const FullPipe pipe;
        const TemporaryDirectory directory;
        const auto errors = directory.path() / "errors";
        const UniqueFd error(::open(errors.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        Command command;
        command.arguments = {binary_directory() + "/06_allreduce", "--bytes", "1K", "--mode", mode};
        command.environment = {"SYMM_DRIVER=emulated", "SYMM_TIMEOUT=5"};
        command.standard_output = pipe.writer.get();
        command.standard_error = error.get();
        Process program(command);
        const auto status = program.wait(Deadline::after(std::chrono::seconds(60)));
        ASSERT_TRUE(status) << mode;
        EXPECT_EQ(status->code, 1) << mode;
        std::ifstream file(errors);
        const std::string text(std::istreambuf_iterator<char>(file), {});
        EXPECT_NE(text.find("cannot write to stdout"), std::string::npos) << mode << text;
    }
}

}  // namespace
}  // namespace symm
