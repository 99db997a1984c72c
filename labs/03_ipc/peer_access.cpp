#include "labs/03_ipc/peer_access.hpp"

#include <stdexcept>

#include "common/cuda/check.hpp"
#include "common/cuda/device.hpp"

namespace symm {

void require_peer_access(int device, int owner) {
    if (owner == device || owner < 0 || owner >= device_count()) {
        return;
    }
    int can = 0;
    check(cuDeviceCanAccessPeer(&can, device_handle(device), device_handle(owner)),
          "cuDeviceCanAccessPeer({}, {})", device, owner);
    if (can == 0) {
        throw std::runtime_error(
            fmt::format("device {} cannot access device {}'s memory (no peer access). Use ranks on "
                        "devices that are peers (CUDA_VISIBLE_DEVICES), or host memory (lab 04).",
                        device, owner));
    }
}

}  // namespace symm
