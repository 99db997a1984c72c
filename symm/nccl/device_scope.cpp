#include "symm/nccl/device_scope.hpp"

#include <fmt/core.h>

#include <map>
#include <mutex>
#include <stdexcept>

namespace symm::drop_in {
namespace {

/// Retained once, and never released: the program may use CUDA until it ends.
CUcontext primary_context(int device) {
    static std::mutex mutex;
    static auto& contexts = *new std::map<int, CUcontext>;
    const std::lock_guard lock(mutex);
    CUcontext& context = contexts[device];
    if (context == nullptr) {
        CUdevice handle = 0;
        check(cuInit(0), "cuInit()");
        check(cuDeviceGet(&handle, device), "cuDeviceGet()");
        check(cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain()");
    }
    return context;
}

}  // namespace

void check(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error(
            fmt::format("{} failed: CUDA error {}", call, static_cast<int>(result)));
    }
}

DeviceScope::DeviceScope(int device) {
    check(cuCtxPushCurrent(primary_context(device)), "cuCtxPushCurrent()");
    cuThreadExchangeStreamCaptureMode(&mode_);
}

DeviceScope::~DeviceScope() {
    cuThreadExchangeStreamCaptureMode(&mode_);
    CUcontext popped = nullptr;
    cuCtxPopCurrent(&popped);
}

}  // namespace symm::drop_in
