#include "labs/01_vmm_alloc/own_context.hpp"

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

namespace symm {

namespace {

CUresult create_context(CUcontext* context, CUdevice device) {
#if CUDA_VERSION >= 13000
    return cuCtxCreate(context, nullptr, CU_CTX_SCHED_AUTO, device);
#else
    return cuCtxCreate(context, CU_CTX_SCHED_AUTO, device);
#endif
}

}  // namespace

OwnContext::OwnContext(int device) {
    cu_check(create_context(&context_, device_handle(device)), "cuCtxCreate(device={})", device);
    // cuCtxCreate pushes what it makes: take it down again.
    CUcontext popped = nullptr;
    const CUresult result = cuCtxPopCurrent(&popped);
    if (result != CUDA_SUCCESS) {
        cu_check_nothrow(cuCtxDestroy(context_), "cuCtxDestroy()");
        cu_check(result, "cuCtxPopCurrent()");
    }
}

OwnContext::~OwnContext() {
    if (context_ != nullptr) {
        cu_check_nothrow(cuCtxDestroy(context_), "cuCtxDestroy()");
    }
}

}  // namespace symm
