// Which driver is used where libcuda.so.1 is there. Here it is a fake one (fake_cuda.cpp).

#include "common/cuda/driver.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/cuda/device.hpp"
#include "common/tests/forked.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/run_program.hpp"
#include "common/tests/variable_in_force.hpp"

int devices_of_the_library();  // user_of_cuda.cpp

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// For the next tests, which run this one in processes of its own.
TEST(Driver, DISABLED_IsDescribed) {
    fmt::print("{}\n", describe_driver());
}

std::string described(const std::string& environment, const std::string& libraries = FAKE_CUDA) {
    return run_test("Driver.DISABLED_IsDescribed",
                    "SYMM_DRIVER=auto LD_LIBRARY_PATH=" + libraries + " " + environment)
        .output;
}

TEST(Driver, ThatIsBrokenIsReportedWithARemedy) {
    for (const auto& [result, name, remedy] :
         {std::tuple(802, "CUDA_ERROR_SYSTEM_NOT_READY", "fabricmanager"),
          {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "different versions"},
          {34, "CUDA_ERROR_STUB_LIBRARY", "LD_LIBRARY_PATH"},
          {3, "CUDA_ERROR_NOT_INITIALIZED", "nvidia-smi"},
          {999, "CUDA_ERROR_UNKNOWN", ""}}) {
        const std::string broken = fmt::format("FAKE_CUINIT={}", result);
        EXPECT_THAT(described(broken),
                    AllOf(HasSubstr("warning: GPUs are emulated"), HasSubstr(name),
                          HasSubstr(remedy), HasSubstr("driver: emulated (")));
    }
    EXPECT_THAT(described("", FAKE_OLD_CUDA),
                AllOf(HasSubstr("warning: GPUs are emulated"), HasSubstr("newer driver")));
}

TEST(Driver, WithoutAGpuIsNoMatterForAWarning) {
    EXPECT_THAT(described("FAKE_CUINIT=100"),
                AllOf(Not(HasSubstr("warning")), HasSubstr("CUDA_ERROR_NO_DEVICE")));
    EXPECT_THAT(described(""), AllOf(Not(HasSubstr("warning")), HasSubstr("native, 7 devices")));
}

TEST(Driver, OfOneRankIsThatOfAll) {
    const VariableInForce libraries("LD_LIBRARY_PATH", FAKE_CUDA);
    RankOptions options = ranks_of_this_test(3, RankMode::kProcess);
    options.device = [](int rank) {
        choose_driver(rank == 2 ? "emulated" : "native");
        return 0;
    };
    const std::string error = error_of(options, [](Rank&) { FAIL(); });
    if (!is_rank_process()) {
        EXPECT_THAT(error, AllOf(HasSubstr("rank 2 has another CUDA driver than rank 0"),
                                 HasSubstr("driver: emulated (as requested)"),
                                 HasSubstr("driver: native")));
    }
}

// A shared library that is linked with libcuda gets the real one, whatever this program uses.
TEST(Driver, OfThisProgramIsNotThatOfItsSharedLibraries) {
    EXPECT_EQ(device_count(), 4);
    EXPECT_EQ(devices_of_the_library(), 7);
}

// For the next test, which runs it in a process of its own.
TEST(Driver, DISABLED_IsUsedByAParentAndItsChild) {
    EXPECT_EQ(device_count(), 7);
    EXPECT_EQ(end_of_child([] {
                  CUstream stream = nullptr;
                  require(cuStreamDestroy(stream) == CUDA_ERROR_NOT_INITIALIZED, "it was called");
                  const std::string text = text_thrown_by([] { device_count(); });
                  require(text.find("fork()") != std::string::npos, text);
              }),
              "exited with code 0");
    EXPECT_EQ(device_count(), 7);
}

// In a child of fork() some of a real driver's functions crash.
TEST(Driver, IsNotCalledByAForkedChild) {
    expect_passes("Driver.DISABLED_IsUsedByAParentAndItsChild",
                  "SYMM_DRIVER=native LD_LIBRARY_PATH=" FAKE_CUDA);
}

}  // namespace
}  // namespace symm
