#include "labs/06_allreduce/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "common/cli/bytes.hpp"
#include "common/cli/usage_error.hpp"
#include "common/cuda/device.hpp"
#include "common/cuda/driver.hpp"

namespace symm {
namespace {

unsigned divide_up(std::size_t items, std::size_t by) {
    return static_cast<unsigned>(std::min<std::size_t>((items + by - 1) / by, 1U << 30));
}

/// One thread an item, in whole warps, and no more blocks than fit.
Shape shape_for(std::size_t items, const DeviceShape& device) {
    const unsigned threads =
        std::clamp(std::min(divide_up(items, 32), 32U) * 32, 32U, device.threads);
    return {std::clamp(divide_up(items, threads), 1U, device.blocks), threads};
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::kAuto:
            return "auto";
        case Algorithm::kOneShot:
            return "oneshot";
        case Algorithm::kTwoShot:
            return "twoshot";
    }
    return "unknown";
}

Algorithm algorithm(std::string_view name) {
    for (const Algorithm known : {Algorithm::kAuto, Algorithm::kOneShot, Algorithm::kTwoShot}) {
        if (name == name_of(known)) {
            return known;
        }
    }
    throw UsageError(fmt::format("--algo {}: say auto, oneshot or twoshot", name));
}

DeviceShape DeviceShape::of(int device, int sharing) {
    if (is_emulated()) {
        return {2, 32};  // each thread is one of the host's
    }
    const Device gpu(device);
    const auto sms = static_cast<unsigned>(gpu.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    // The kernels take up to 102 registers a thread (ptxas -v): one block of 512 threads a multiprocessor is what
    // surely fits beside the other ranks' blocks.
    constexpr unsigned kThreads = 512;
    const unsigned blocks = sms / static_cast<unsigned>(sharing);
    if (blocks == 0) {
        throw std::invalid_argument(
            fmt::format("{} ranks of one process share device {}, whose {} multiprocessors cannot "
                        "keep a block of "
                        "each resident: use fewer ranks, or --mode process",
                        sharing, device, sms));
    }
    return {std::min(blocks, kMaxBlocks), kThreads};
}

std::size_t one_shot_preferred(int ranks) {
    // Two H200s: 512K take 5.7 us in one shot, 7.5 in two. The others are expected from that: what one shot
    // sends grows with the ranks, what two shots send does not.
    if (ranks <= 2) {
        return 512 * 1024;
    }
    return ranks <= 4 ? 128 * 1024 : 32 * 1024;
}

Plan plan(const CallSize& call, Algorithm asked, const DeviceShape& device) {
    const std::size_t bytes = call.count * size_of(call.type);
    const bool one_shot_can = bytes <= kOneShotLimit;
    std::string reason = "as asked";
    if (asked == Algorithm::kOneShot && !one_shot_can) {
        throw std::invalid_argument(fmt::format("oneshot carries up to {}, not {}: use twoshot",
                                                format_bytes(kOneShotLimit), format_bytes(bytes)));
    }
    if (asked == Algorithm::kTwoShot && !call.windows) {
        throw std::invalid_argument(
            "twoshot needs both buffers in windows (Communicator::allocate)");
    }
    if (asked == Algorithm::kAuto) {
        if (bytes <= one_shot_preferred(call.ranks)) {
            asked = Algorithm::kOneShot;
            reason = fmt::format("at most {} for {} ranks: one trip beats two barriers",
                                 format_bytes(one_shot_preferred(call.ranks)), call.ranks);
        } else if (call.windows) {
            asked = Algorithm::kTwoShot;
            // A link carries 2 (n-1) x the bytes in packets, 2 (n-1)/n x in two shots.
            reason = fmt::format(
                "above {} for {} ranks: one shot's packets, half flags, carry {} times the bytes",
                format_bytes(one_shot_preferred(call.ranks)), call.ranks, call.ranks);
        } else if (one_shot_can) {
            asked = Algorithm::kOneShot;
            reason = "a buffer lies in no window: only one shot can do it";
        } else {
            throw std::invalid_argument(fmt::format(
                "{} need both buffers in windows (Communicator::allocate); without, {} is the most",
                format_bytes(bytes), format_bytes(kOneShotLimit)));
        }
    }
    const std::size_t items = asked == Algorithm::kOneShot
                                  ? (bytes + 7) / 8
                                  : (bytes / static_cast<std::size_t>(call.ranks) + 15) / 16;
    return {asked, shape_for(std::max<std::size_t>(items, 1), device), reason};
}

}  // namespace symm
