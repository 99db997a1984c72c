// Contexts: the primary one, those of cuCtxCreate, and which one is current on a thread.

#include <thread>

#include "common/tests/conformance/conformance.hpp"

namespace symm::conformance {
namespace {

CUresult create_context(CUcontext* context, unsigned flags, CUdevice device) {
#if CUDA_VERSION >= 13000
    return cuCtxCreate(context, nullptr, flags, device);
#else
    return cuCtxCreate(context, flags, device);
#endif
}

class Contexts : public Driver {
protected:
    static CUcontext current() {
        CUcontext found = nullptr;
        EXPECT_OK(cuCtxGetCurrent(&found));
        return found;
    }
    static CUcontext pop() {
        CUcontext popped = nullptr;
        EXPECT_OK(cuCtxPopCurrent(&popped));
        return popped;
    }
    static CUdevice current_device() {
        CUdevice found = -1;
        EXPECT_OK(cuCtxGetDevice(&found));
        return found;
    }
    static CUcontext create(unsigned flags = 0) {
        CUcontext own = nullptr;
        EXPECT_OK(create_context(&own, flags, device()));
        return own;
    }
};

TEST_F(Contexts, ThePrimaryIsOneWhileAnyoneRetainsIt) {
    CUcontext second = nullptr;
    EXPECT_OK(cuDevicePrimaryCtxRetain(&second, device()));
    EXPECT_EQ(second, primary_context());
    EXPECT_EQ(current_device(), device());
    EXPECT_OK(cuDevicePrimaryCtxRelease(device()));
    EXPECT_OK(cuCtxSynchronize());
    Allocation memory(64);
}

TEST_F(Contexts, RetainAndReleaseNeedADevice) {
    CUcontext context = nullptr;
    EXPECT_RESULT(cuDevicePrimaryCtxRetain(&context, kNoDevice), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_INVALID(cuDevicePrimaryCtxRetain(nullptr, device()));
    EXPECT_RESULT(cuDevicePrimaryCtxRelease(kNoDevice), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Contexts, EachDeviceHasItsOwnPrimary) {
    SYMM_NEEDS(device_count() >= 2);
    CUcontext other = nullptr;
    ASSERT_OK(cuDevicePrimaryCtxRetain(&other, device(1)));
    EXPECT_NE(other, primary_context());
    EXPECT_OK(cuCtxPushCurrent(other));
    EXPECT_EQ(current_device(), device(1));
    pop();
    EXPECT_OK(cuDevicePrimaryCtxRelease(device(1)));
}

TEST_F(Contexts, AnOwnOneCanBeSetAsideAndDestroyedLater) {
    const CUcontext own = create();
    EXPECT_EQ(pop(), own);
    EXPECT_OK(cuCtxDestroy(own));
    EXPECT_OK(cuCtxSynchronize());
}

TEST_F(Contexts, CreationNeedsADeviceAndKnownFlags) {
    CUcontext own = nullptr;
    EXPECT_RESULT(create_context(&own, 0, kNoDevice), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_INVALID(create_context(&own, 0x80000000u, device()));
    EXPECT_INVALID(create_context(nullptr, 0, device()));
    EXPECT_RESULT(cuCtxDestroy(nullptr), CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, AnOwnOneLiesOnAStackWithOthers) {
    const CUcontext own = create(CU_CTX_SCHED_BLOCKING_SYNC);
    EXPECT_NE(own, primary_context());
    EXPECT_EQ(current(), own);
    {
        Allocation memory(1000);
        expect_written(memory.base, 1000, 3);
    }
    EXPECT_OK(cuCtxPushCurrent(primary_context()));
    EXPECT_EQ(pop(), primary_context());
    EXPECT_EQ(current(), own);
    EXPECT_OK(cuCtxDestroy(own));
    EXPECT_EQ(current(), primary_context());
}

TEST_F(Contexts, SettingReplacesTheTopOfTheStack) {
    EXPECT_OK(cuCtxPushCurrent(primary_context()));
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
    pop();
    EXPECT_EQ(current(), primary_context());
}

TEST_F(Contexts, WithoutOneThereIsNothingToDoOrAsk) {
    const Buffer buffer(1);
    std::thread([&] {
        EXPECT_EQ(current(), nullptr);  // a thread starts with none
        CUdevice device = -1;
        CUdeviceptr memory = 0;
        CUcontext popped = nullptr;
        CUstream stream = nullptr;
        for (const CUresult result :
             {cuCtxSynchronize(), cuCtxGetDevice(&device), cuMemAlloc(&memory, 64),
              cuCtxPopCurrent(&popped), cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
              cuMemGetAddressRange(&memory, nullptr, buffer.base())}) {
            EXPECT_RESULT(result, CUDA_ERROR_INVALID_CONTEXT);
        }
    }).join();
}

TEST_F(Contexts, NullCanBeMadeCurrentButTakesNoAnswer) {
    EXPECT_INVALID(cuCtxGetCurrent(nullptr));
    EXPECT_INVALID(cuCtxGetDevice(nullptr));
    EXPECT_OK(cuCtxSetCurrent(nullptr));
    EXPECT_EQ(current(), nullptr);
    EXPECT_RESULT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_OK(cuCtxSetCurrent(primary_context()));
}

}  // namespace
}  // namespace symm::conformance
