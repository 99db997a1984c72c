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
    CUcontext context = nullptr;
    cu_check(create_context(&context, device_handle(device)), "cuCtxCreate(device={})", device);
    value_ = context;
    // cuCtxCreate also makes the context current: this thread's former one comes back.
    cu_check(cuCtxPopCurrent(&context), "cuCtxPopCurrent()");
}

void OwnContext::give_back(CUcontext context) {
    cu_check(cuCtxDestroy(context), "cuCtxDestroy()");
}

}  // namespace symm
