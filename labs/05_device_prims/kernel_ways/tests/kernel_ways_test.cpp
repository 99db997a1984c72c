#include "labs/05_device_prims/kernel_ways/kernel_ways.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "common/cuda/cuda_error.hpp"
#include "common/cuda/driver.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/tests/needs.hpp"

namespace symm {
namespace {

class KernelWays : public ::testing::Test {
protected:
    KernelWays() { add_kernel_twins(); }
    const Gpu gpu_{0};
};

// The call's error; CUDA_SUCCESS if it throws nothing.
template <class Call>
CUresult error_of(const Call& call) {
    try {
        call();
        return CUDA_SUCCESS;
    } catch (const CudaError& error) {
        return error.result();
    }
}

class OfCount : public KernelWays, public testing::WithParamInterface<std::size_t> {};

TEST_P(OfCount, AllWaysGiveTheHostsResults) {
    const KernelTrial trial(gpu_, GetParam());
    const PtxLibrary library(kKernelPtx);
    const auto expect_right = [&](CUfunction function, std::uint32_t index) {
        trial.poison();
        trial.run(function, index);
        trial.check(index);
    };
    expect_right(library.function(kKernelName), 0);
    expect_right(scale_and_shift_by_symbol(), 0);
    for (std::uint32_t index = 0; index < kOperationCount; ++index) {
        expect_right(kernel_with_table(), index);
    }
}

INSTANTIATE_TEST_SUITE_P(Counts, OfCount, ::testing::Values(0, 1, 31, 63, 65, 1027, 65'537));

TEST_F(KernelWays, TheCheckFindsAWrongAndAMissingResult) {
    const KernelTrial trial(gpu_, 1027);
    EXPECT_THROW(trial.check(), std::runtime_error);  // nothing has run
    trial.run(kernel_with_table(), 1);
    trial.check(1);
    EXPECT_THROW(trial.check(0), std::runtime_error);
    EXPECT_THROW(trial.check(2), std::runtime_error);
    trial.poison();
    EXPECT_THROW(trial.check(1), std::runtime_error);
}

TEST_F(KernelWays, AnIndexBehindTheTableIsRefused) {
    const KernelTrial trial(gpu_, 1);
    EXPECT_THROW(trial.run(kernel_with_table(), kOperationCount), std::invalid_argument);
}

TEST_F(KernelWays, EmulatedNothingIsLeftBehindWhereACallFails) {
    SYMM_NEEDS(is_emulated());
    const emu::Inventory before = emu::inventory();
    for (const char* call : {"cuMemAlloc", "cuMemsetD8Async", "cuLibraryLoadData",
                             "cuLibraryGetKernel", "cuKernelGetFunction", "cuLaunchKernel"}) {
        emu::fail_call(call, 1, CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_EQ(error_of([&] {
                      const KernelTrial trial(gpu_, 5);
                      const PtxLibrary library(kKernelPtx);
                      trial.run(library.function(kKernelName));
                  }),
                  CUDA_ERROR_OUT_OF_MEMORY)
            << call;
        EXPECT_EQ(emu::inventory(), before) << call;
    }
}

}  // namespace
}  // namespace symm
