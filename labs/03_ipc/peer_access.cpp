#include "labs/03_ipc/peer_access.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "common/cuda/device.hpp"

namespace symm {

void require_peer_access(int device, int owner) {
    const bool seen_here = owner >= 0 && owner < device_count();
    if (seen_here && !can_access(device, owner)) {
        throw std::runtime_error(
            fmt::format("device {} cannot access device {}'s memory (no peer access). Use ranks on "
                        "devices that are peers (CUDA_VISIBLE_DEVICES), or host memory (lab 04).",
                        device, owner));
    }
}

}  // namespace symm
