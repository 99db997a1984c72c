#include "labs/04_shm_transport/pinned_calloc.hpp"

#include "common/cuda/check.hpp"

namespace symm {

RelaxedCaptureMode::RelaxedCaptureMode() {
    cu_check(exchange(), "cuThreadExchangeStreamCaptureMode(RELAXED)");
}

PinnedMemory pinned_calloc(std::size_t bytes) {
#ifndef SYMM_MUTANT_NO_EXCHANGE  // without it: the allocation fails, and the capture is lost
    const RelaxedCaptureMode relaxed;
#endif
    return PinnedMemory(bytes);  // which zeroes it, by memset
}

}  // namespace symm
