// The program 04_shm_transport: its output, its exit codes, what it leaves behind.

#include <gtest/gtest.h>

#include "common/tests/program_case.hpp"

namespace symm {
namespace {

using namespace testing;

TEST(Program, EndsAsItShouldAndLeavesNothing) {
    const std::string right = "All checks passed.";
    expect_runs(
        "04_shm_transport",
        {{"", 0, {"3                    15     9       2  .######.", right}},
         {"--ranks 3 --mode thread", 0, {right}},
         {"--ranks 1 --bytes 4", 0, {right}},
         {"--ranks 4 --path posix --bytes 100004", 0, {"share: POSIX", right}},
         {"--mode thread --path cumem --slot 1K --channels 1", 0, {"in 1024 step(s) of 1K", right}},
         {"--mode thread --proxy both --locality sender",
          0,
          {"Slots: near the sender; copy engine: both", right}},
         {"--proxy sender --slot 0", 0, {"copy engine: sender", right}},
         {"--help", 0, {"--path"}},
         {"",
          0,
          {"share: POSIX", "not cuMem: rank 0: SYMM_CUMEM_HOST_ENABLE=0", right},
          {"SYMM_CUMEM_HOST_ENABLE=0"}},
         {"",
          0,
          {"not cuMem: rank 0: cuMemExportToShareableHandle(", right},
          {"SYMM_EMU_FAIL=cuMemExportToShareableHandle:1:CUDA_ERROR_NOT_PERMITTED"}},
         {"--proxy everybody", 2, {"none, sender, receiver, both"}},
         {"--locality moon", 2, {"one of sender, receiver"}},
         {"--ranks 0", 2, {"1 to 64"}},
         {"--bytes 0", 2, {"--bytes 1M"}},
         {"--bytes 5", 2, {"multiple of 4"}},
         {"--bytes 4096G", 2, {"is more than"}},
         {"--iters 0", 2, {"--iters"}},
         {"--path carrier-pigeon", 2, {"auto, cumem, posix"}},
         {"--slot 100", 2, {"multiple of 128"}},
         {"--silent 2", 2, {"not a rank"}},
         {"--teleport", 2, {"--teleport"}}});
}

// Two ranks and a message that fits into the slots: only one wait can be in vain. And a driver that
// fails is no reason to take the other path.
TEST(Program, FailsWithTheCauseWhereARankSendsNothingOrTheProbeFails) {
    for (const std::string mode : {"--mode process", "--mode thread"}) {
        expect_runs("04_shm_transport",
                    {{"--bytes 1K --silent 0 " + mode,
                      1,
                      {"rank 1 waited 0.5 s in a kernel for a filled FIFO slot from rank 0: "
                       "expected 1, saw 0"},
                      {"SYMM_TIMEOUT=0.5"}},
                     {mode,
                      1,
                      {"cuMemSetAccess", "CUDA_ERROR_UNKNOWN"},
                      {"SYMM_EMU_FAIL=cuMemSetAccess:3:CUDA_ERROR_UNKNOWN"}}});
    }
}

}  // namespace
}  // namespace symm
