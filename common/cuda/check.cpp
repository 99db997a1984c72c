#include "common/cuda/check.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include "common/cuda/driver.hpp"

namespace symm {

std::string_view remedy(CUresult result) {
    switch (result) {
        case CUDA_ERROR_INVALID_VALUE:
            return "Check sizes and addresses against the allocation granularity, and that the "
                   "range is reserved, mapped or free as the call requires.";
        case CUDA_ERROR_OUT_OF_MEMORY:
            return "Ask for less, or free memory on that device (emulated: SYMM_EMU_MEMORY, or "
                   "the limit that the emulated driver has reported).";
        case CUDA_ERROR_NOT_INITIALIZED:
            return "Call cuInit(0) first. If cuInit itself returns this, see nvidia-smi.";
        case CUDA_ERROR_STUB_LIBRARY:
            return "This libcuda.so.1 is the CUDA Toolkit's stub, which is only for linking: take "
                   "its folder (stubs) out of LD_LIBRARY_PATH.";
        case CUDA_ERROR_NO_DEVICE:
            return "No GPU is visible: check CUDA_VISIBLE_DEVICES, or use --driver emulated.";
        case CUDA_ERROR_INVALID_DEVICE:
            return "Check how many devices there are, and which of them are peers.";
        case CUDA_ERROR_INVALID_CONTEXT:
            return "Make a context current first.";
        case CUDA_ERROR_ILLEGAL_ADDRESS:
            return "A kernel accessed memory that its device may not access: check "
                   "cuMemSetAccess. The context is lost.";
        case CUDA_ERROR_NOT_PERMITTED:
            return "The system refuses it (FABRIC handles need an IMEX channel): use a POSIX "
                   "descriptor.";
        case CUDA_ERROR_NOT_SUPPORTED:
            return "This device or system does not support it.";
        case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
            return "An earlier error has broken the stream's capture: end it (cuStreamEndCapture), "
                   "and capture again.";
        case CUDA_ERROR_SYSTEM_NOT_READY:
            return "GPUs with NVSwitch work only while the fabric manager runs: see `systemctl "
                   "status nvidia-fabricmanager`, or ask the machine's administrator.";
        case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
            return "libcuda.so.1 and the kernel's driver have different versions: restart the "
                   "machine after an update of the driver, and the container with the host's "
                   "libcuda.";
        default:
            return "";
    }
}

// Not cuGetErrorName: it needs a driver, and some errors say that there is none.
std::string_view name_of(CUresult result) {
    switch (result) {
#define SYMM_RESULT(code) \
    case code:            \
        return #code;
#include "common/driver/results.inc"
#undef SYMM_RESULT
        default:
            return "an unlisted CUDA error";
    }
}

namespace {

struct DriverIsGone : CudaError, IsGone {
    using CudaError::CudaError;
};

}  // namespace

void detail::throw_cuda_error(CUresult result, const std::string& call) {
    if (const auto parent = driver_of_parent(); parent && result == CUDA_ERROR_NOT_INITIALIZED) {
        throw DriverIsGone(
            result,
            fmt::format(
                "{} failed: {}. This process, {}, is a child that fork() made after process "
                "{} had used the CUDA driver: such a child can use neither the driver nor "
                "what its parent has made with it, like communicators. Start ranks as new "
                "programs (exec, posix_spawn; Python: multiprocessing's \"spawn\"), or fork "
                "before the driver is used",
                call, name_of(result), ::getpid(), *parent));
    }
    const std::string_view what_next = remedy(result);
    const std::string text = fmt::format("{} failed: {}{}{}", call, name_of(result),
                                         what_next.empty() ? "." : ". ", what_next);
    if (result == CUDA_ERROR_DEINITIALIZED) {
        throw DriverIsGone(result, text);
    }
    throw CudaError(result, text);
}

}  // namespace symm
