#pragma once
/// \file
/// The timeouts of a scene's ranks.

#include <cstdint>

#include "common/simt/waiter.hpp"
#include "tools/explore/explore.hpp"

namespace symm::explore {

inline simt::Timeout timeout_of(Scene& scene, int rank) {
    return {scene.zeroed<std::uint32_t>(1, "gave_up", rank),
            scene.zeroed<simt::WaitReport>(1, "report", rank), 1};
}

/// Called between kernels: whether this rank has given up, so that its host throws.
inline bool gave_up(const simt::Timeout& timeout) {
    return simt::load(timeout.gave_up, simt::Order::kRelaxed) != 0;
}

}  // namespace symm::explore
