#include "labs/04_shm_transport/host_memory/pinned_calloc.hpp"

#include "common/cuda/check.hpp"

namespace symm {

RelaxedCaptureMode::RelaxedCaptureMode() {
    cu_check(exchange(), "cuThreadExchangeStreamCaptureMode(RELAXED)");
}

PinnedMemory pinned_calloc(std::size_t bytes) {
    const RelaxedCaptureMode relaxed;
    return PinnedMemory(bytes);  // which zeroes it, by memset
}

}  // namespace symm
