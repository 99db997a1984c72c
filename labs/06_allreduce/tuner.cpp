#include "labs/06_allreduce/tuner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "common/cli/bytes.hpp"
#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, 3> kAlgorithmNames{"auto", "oneshot", "twoshot"};

unsigned divide_up(std::size_t items, std::size_t by) {
    return static_cast<unsigned>(std::min<std::size_t>((items + by - 1) / by, 1U << 30));
}

/// One thread per item, in whole warps, and no more blocks than fit.
LaunchShape shape_for(std::size_t items, const LaunchShape& most) {
    const unsigned threads =
        std::clamp(std::min(divide_up(items, 32), 32U) * 32, 32U, most.threads);
    return {std::clamp(divide_up(items, threads), 1U, most.blocks), threads};
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
    return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}

Algorithm algorithm_named(std::string_view name) {
    return named<Algorithm>(kAlgorithmNames, "--algo", name);
}

std::size_t one_shot_preferred(int ranks) {
    // Two H200s: 512K takes 5.7 us in one shot, 7.5 us in two. The limits for more ranks are not
    // measured but expected: per link one shot sends 2 (n-1) x the bytes, two shots less than 2 x.
    if (ranks <= 2) {
        return 512 * 1024;
    }
    return ranks <= 4 ? 128 * 1024 : 32 * 1024;
}

std::string describe(TunerReason reason, int ranks) {
    const std::string limit = format_bytes(one_shot_preferred(ranks));
    switch (reason) {
        case TunerReason::kAsked:
            return "as asked";
        case TunerReason::kSmall:
            return fmt::format("up to {}: one trip takes less time than two barriers", limit);
        case TunerReason::kLarge:
            // Per link, one shot sends 2 (n-1) x the bytes (half of a packet is flags), two shots
            // send 2 (n-1)/n x the bytes.
            return fmt::format("above {}: one shot would send {} times as many bytes", limit,
                               ranks);
        case TunerReason::kNoWindow:
            return "a buffer lies in no window: only one shot is possible";
    }
    return "unknown";
}

CallPlan plan_call(const CallSize& call, Algorithm asked, const LaunchShape& most) {
    const std::size_t bytes = call.count * size_of(call.type);
    const bool one_shot_can = bytes <= kOneShotLimit;
    TunerReason reason = TunerReason::kAsked;
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
            reason = TunerReason::kSmall;
        } else if (call.windows) {
            asked = Algorithm::kTwoShot;
            reason = TunerReason::kLarge;
        } else if (one_shot_can) {
            asked = Algorithm::kOneShot;
            reason = TunerReason::kNoWindow;
        } else {
            throw std::invalid_argument(fmt::format(
                "{} need both buffers in windows (Communicator::allocate); other memory can "
                "be at most {}",
                format_bytes(bytes), format_bytes(kOneShotLimit)));
        }
    }
    const std::size_t items = asked == Algorithm::kOneShot
                                  ? (bytes + 7) / 8
                                  : (bytes / static_cast<std::size_t>(call.ranks) + 15) / 16;
    return {asked, shape_for(std::max<std::size_t>(items, 1), most), reason};
}

}  // namespace symm
