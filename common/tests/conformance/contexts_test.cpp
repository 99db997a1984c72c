// Contexts: the primary one, those of cuCtxCreate, and which one is current on a thread.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

using Contexts = Driver;

CUresult create_context(CUcontext* context, unsigned flags, CUdevice device) {
#if CUDA_VERSION >= 13000
    return cuCtxCreate(context, nullptr, flags, device);
#else
    return cuCtxCreate(context, flags, device);
#endif
}

TEST_F(Contexts, ThePrimaryIsTheSameForAll) {
    CUcontext second = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&second, device()));
    EXPECT_EQ(second, primary_context());
    EXPECT_OK(cuDevicePrimaryCtxRelease(device()));
}

TEST_F(Contexts, ThePrimaryOutlivesAReleaseWhileOthersRetainIt) {
    CUcontext second = nullptr;
    ASSERT_OK(cuDevicePrimaryCtxRetain(&second, device()));
    ASSERT_OK(cuDevicePrimaryCtxRelease(device()));
    EXPECT_OK(cuCtxSynchronize());
    CUdeviceptr memory = 0;
    EXPECT_OK(cuMemAlloc(&memory, 64));
    EXPECT_OK(cuMemFree(memory));
}

TEST_F(Contexts, RetainNeedsADeviceAndSomewhereToGo) {
    CUcontext context = nullptr;
    EXPECT_RESULT(cuDevicePrimaryCtxRetain(&context, 9999), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_RESULT(cuDevicePrimaryCtxRetain(nullptr, device()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Contexts, ReleaseNeedsADevice) {
    EXPECT_RESULT(cuDevicePrimaryCtxRelease(9999), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Contexts, EachDeviceHasItsOwnPrimary) {
    if (device_count() < 2) {
        GTEST_SKIP() << "needs two devices";
    }
    CUcontext other = nullptr;
    ASSERT_OK(cuDevicePrimaryCtxRetain(&other, device(1)));
    EXPECT_NE(other, primary_context());
    EXPECT_OK(cuCtxPushCurrent(other));
    CUdevice found = -1;
    EXPECT_OK(cuCtxGetDevice(&found));
    EXPECT_EQ(found, device(1));
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent(&popped));
    EXPECT_OK(cuDevicePrimaryCtxRelease(device(1)));
}

TEST_F(Contexts, OneThatIsCreatedBecomesCurrent) {
    CUcontext own = nullptr;
    ASSERT_OK(create_context(&own, 0, device()));
    EXPECT_NE(own, nullptr);
    EXPECT_NE(own, primary_context());
    CUcontext current = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, own);
    EXPECT_OK(cuCtxDestroy(own));
}

TEST_F(Contexts, DestroyingTheCurrentOneBringsBackTheOneBefore) {
    CUcontext own = nullptr;
    ASSERT_OK(create_context(&own, 0, device()));
    EXPECT_OK(cuCtxDestroy(own));
    CUcontext current = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, primary_context());
}

TEST_F(Contexts, AnOwnOneCanBeSetAsideAndDestroyedLater) {
    CUcontext own = nullptr;
    ASSERT_OK(create_context(&own, 0, device()));
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent(&popped));
    EXPECT_EQ(popped, own);
    EXPECT_OK(cuCtxDestroy(own));
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Contexts, AnOwnOneWorks) {
    CUcontext own = nullptr;
    ASSERT_OK(create_context(&own, CU_CTX_SCHED_BLOCKING_SYNC, device()));
    CUdeviceptr memory = 0;
    EXPECT_OK(cuMemAlloc(&memory, 1000));
    const auto written = pattern(1000, 3);
    write_bytes(memory, written);
    EXPECT_EQ(read_bytes(memory, 1000), written);
    EXPECT_OK(cuMemFree(memory));
    EXPECT_OK(cuCtxDestroy(own));
}

TEST_F(Contexts, CreationNeedsADevice) {
    CUcontext own = nullptr;
    EXPECT_RESULT(create_context(&own, 0, 9999), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Contexts, CreationNeedsKnownFlagsAndSomewhereToGo) {
    CUcontext own = nullptr;
    EXPECT_RESULT(create_context(&own, 0x80000000u, device()), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(create_context(nullptr, 0, device()), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Contexts, DestroyingNothingIsRefused) {
    EXPECT_RESULT(cuCtxDestroy(nullptr), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, TheCurrentOneKnowsItsDevice) {
    CUdevice found = -1;
    EXPECT_OK(cuCtxGetDevice(&found));
    EXPECT_EQ(found, device());
}

TEST_F(Contexts, PushAndPopAreAStack) {
    CUcontext own = nullptr;
    ASSERT_OK(create_context(&own, 0, device()));
    EXPECT_OK(cuCtxPushCurrent(primary_context()));
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent(&popped));
    EXPECT_EQ(popped, primary_context());
    EXPECT_OK(cuCtxGetCurrent(&popped));
    EXPECT_EQ(popped, own);
    EXPECT_OK(cuCtxDestroy(own));
}

TEST_F(Contexts, SettingReplacesTheTopOfTheStack) {
    EXPECT_OK(cuCtxPushCurrent(primary_context()));
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
    CUcontext popped = nullptr;
    EXPECT_OK(cuCtxPopCurrent(&popped));
    CUcontext current = nullptr;
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, primary_context());
}

TEST_F(Contexts, AThreadStartsWithNone) {
    CUcontext current = primary_context();
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] { result = cuCtxGetCurrent(&current); }).join();
    EXPECT_OK(result);
    EXPECT_EQ(current, nullptr);
}

TEST_F(Contexts, WithoutOneThereIsNothingToDoOrAsk) {
    CUresult synchronize = CUDA_SUCCESS;
    CUresult device_of = CUDA_SUCCESS;
    CUresult allocate = CUDA_SUCCESS;
    CUresult pop = CUDA_SUCCESS;
    CUresult stream_made = CUDA_SUCCESS;
    CUresult range_of = CUDA_SUCCESS;
    const Buffer buffer(1);
    std::thread([&] {
        synchronize = cuCtxSynchronize();
        CUdevice device = -1;
        device_of = cuCtxGetDevice(&device);
        CUdeviceptr memory = 0;
        allocate = cuMemAlloc(&memory, 64);
        CUcontext popped = nullptr;
        pop = cuCtxPopCurrent(&popped);
        CUstream stream = nullptr;
        stream_made = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        CUdeviceptr base = 0;
        range_of = cuMemGetAddressRange(&base, nullptr, buffer.base());
    }).join();
    EXPECT_RESULT(synchronize, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(device_of, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(allocate, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(pop, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(stream_made, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_RESULT(range_of, CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, NullCanBeMadeCurrent) {
    EXPECT_OK(cuCtxSetCurrent(nullptr));
    CUcontext current = primary_context();
    EXPECT_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
}

TEST_F(Contexts, OneServesSeveralThreads) {
    CUdeviceptr memory = 0;
    ASSERT_OK(cuMemAlloc(&memory, 64));
    const auto written = pattern(64, 9);
    write_bytes(memory, written);
    std::vector<unsigned char> read(64);
    CUresult made_current = CUDA_ERROR_UNKNOWN;
    CUresult copied = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
        made_current = cuCtxSetCurrent(primary_context());
        copied = cuMemcpyDtoH(read.data(), memory, read.size());
    }).join();
    EXPECT_OK(made_current);
    EXPECT_OK(copied);
    EXPECT_EQ(read, written);
    EXPECT_OK(cuMemFree(memory));
}

TEST_F(Contexts, AskingNeedsSomewhereToGo) {
    EXPECT_RESULT(cuCtxGetCurrent(nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_RESULT(cuCtxGetDevice(nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace symm::conformance
