#include "labs/06_allreduce/communicator/residency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace symm {
namespace {
std::mutex mutex;
}

std::list<ResidencyShare::Share>& ResidencyShare::shares() {
    static std::list<Share> all;
    return all;
}

ResidencyShare::ResidencyShare(int device, unsigned blocks, unsigned resident) {
    const std::lock_guard lock(mutex);
    unsigned held = 0;
    unsigned capacity = resident;
    for (const Share& share : shares()) {
        if (share.device == device) {
            held += share.blocks;
            capacity = std::min(capacity, share.resident);
        }
    }
    if (held + blocks > capacity) {
        throw std::invalid_argument(fmt::format(
            "device {} keeps {} blocks of communicators resident at once: others of this process "
            "hold {}, "
            "and this one needs {}. Give each communicator a lower CommunicatorOptions::max_blocks",
            device, capacity, held, blocks));
    }
    share_ = shares().insert(shares().end(), {device, blocks, resident});
}

ResidencyShare::~ResidencyShare() {
    const std::lock_guard lock(mutex);
    shares().erase(share_);
}

}  // namespace symm
