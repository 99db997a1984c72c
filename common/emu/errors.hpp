#pragma once
/// \file
/// How emulated functions fail: they throw the error that their caller gets.

#include <cuda.h>

#include <cerrno>
#include <new>
#include <string_view>

namespace symm::emu {

/// Thrown by an emulated function: what it answers instead of CUDA_SUCCESS.
struct Refused {
    CUresult result;
};

[[noreturn]] inline void refuse(CUresult result) {
    throw Refused{result};
}
inline void refuse_if(bool wrong, CUresult result = CUDA_ERROR_INVALID_VALUE) {
    if (wrong) {
        refuse(result);
    }
}

/// For a system call that failed with `error` (errno): prints on stderr what `call` could not get
/// and which limit to check. Returns CUDA_ERROR_OUT_OF_MEMORY for memory and addresses,
/// CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES for threads (EAGAIN), CUDA_ERROR_OPERATING_SYSTEM for file
/// descriptors and everything else. Needs no heap. Not for the memory of an emulated GPU, whose
/// limit is SYMM_EMU_MEMORY.
CUresult shortage(std::string_view call, int error);

/// Makes a call and returns its answer. A std::bad_alloc becomes a CUDA error, as in a real driver.
template <class Call>
CUresult answer(const Call& call) noexcept {
    try {
        call();
        return CUDA_SUCCESS;
    } catch (const Refused& refused) {
        return refused.result;
    } catch (const std::bad_alloc&) {
        return shortage("the emulated driver", ENOMEM);
    }
}

}  // namespace symm::emu
