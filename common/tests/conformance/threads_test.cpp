// Several threads call the driver at the same time, for many rounds.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Threads = Driver;

// One allocation from its first step to its last; returns the first result that is not success.
CUresult one_round(std::size_t bytes, unsigned char value) {
    const CUmemAllocationProp properties = memory_of(0);
    const CUmemAccessDesc access = access_for(0);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = 0;
    std::vector<unsigned char> bytes_written(1000, value);
    std::vector<unsigned char> bytes_read(1000);
    CUresult first_failure = CUDA_SUCCESS;
    const auto keep = [&](CUresult result) {
        first_failure = first_failure == CUDA_SUCCESS ? result : first_failure;
    };
    keep(cuMemCreate(&handle, bytes, &properties, 0));
    keep(cuMemAddressReserve(&base, bytes, 0, 0, 0));
    keep(cuMemMap(base, bytes, 0, handle, 0));
    keep(cuMemSetAccess(base, bytes, &access, 1));
    keep(cuMemcpyHtoD(base + bytes - 1000, bytes_written.data(), 1000));
    keep(cuMemcpyDtoH(bytes_read.data(), base + bytes - 1000, 1000));
    keep(bytes_read == bytes_written ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    keep(cuMemUnmap(base, bytes));
    keep(cuMemAddressFree(base, bytes));
    keep(cuMemRelease(handle));
    return first_failure;
}

TEST_F(Threads, AllocateSideBySide) {
    const std::size_t bytes = unit();
    std::vector<CUresult> results(4, CUDA_SUCCESS);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&, i] {
            results[i] = cuCtxSetCurrent(primary_context());
            for (int round = 0; round < 10 && results[i] == CUDA_SUCCESS; ++round) {
                results[i] = one_round(bytes * (1 + i), static_cast<unsigned char>(16 * i + round));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (CUresult result : results) {
        EXPECT_OK(result);
    }
}

TEST_F(Threads, OneMapsWhatAnotherCreated) {
    Memory memory(1);
    Range range(unit());
    CUresult mapped = CUDA_ERROR_UNKNOWN;
    CUresult opened = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
        mapped = cuCtxSetCurrent(primary_context());
        if (mapped == CUDA_SUCCESS) {
            mapped = cuMemMap(range.base(), unit(), 0, memory.handle(), 0);
        }
        const CUmemAccessDesc access = access_for(0);
        opened = cuMemSetAccess(range.base(), unit(), &access, 1);
    }).join();
    ASSERT_OK(mapped);
    ASSERT_OK(opened);
    const auto written = pattern(unit(), 1);
    write_bytes(range.base(), written);
    EXPECT_EQ(read_bytes(range.base(), unit()), written);
    EXPECT_OK(cuMemUnmap(range.base(), unit()));
}

TEST_F(Threads, RoundsLeaveNothingBehind) {
    // More rounds than open files a process may have: a leak of one per round would be an error.
    for (int round = 0; round < 1500; ++round) {
        ASSERT_OK(one_round(unit(), static_cast<unsigned char>(round))) << "round " << round;
    }
}

}  // namespace
}  // namespace symm::conformance
