#include "labs/06_allreduce/tuner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "common/cli/bytes.hpp"
#include "common/cuda/driver.hpp"
#include "common/environment/environment.hpp"
#include "common/sys/named.hpp"

namespace symm {
namespace {

constexpr std::array<std::string_view, 5> kAlgorithmNames{"auto", "oneshot", "sentinel", "twoshot",
                                                          "copy"};

unsigned divide_up(std::size_t items, std::size_t by) {
    return static_cast<unsigned>(std::min<std::size_t>((items + by - 1) / by, 1U << 30));
}

/// One thread per item, in whole warps, and no more blocks than fit.
LaunchShape shape_for(std::size_t items, const LaunchShape& most) {
    items = std::max<std::size_t>(items, 1);
    const unsigned threads =
        std::clamp(std::min(divide_up(items, 32), 32U) * 32, 32U, most.threads);
    return {std::clamp(divide_up(items, threads), 1U, most.blocks), threads};
}

/// Measured on two H200s, in packs of 16 bytes.
LaunchShape sentinel_shape(std::size_t packs, const LaunchShape& most) {
    const std::size_t once = std::size_t{most.blocks} * 256;  // a pack per thread
    const unsigned threads = packs > once ? 512 : 256;
    return shape_for(packs, {most.blocks, std::min(threads, most.threads)});
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
    return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}

Algorithm algorithm_named(std::string_view name) {
    return named<Algorithm>(kAlgorithmNames, "--algo", name);
}

std::size_t one_shot_preferred(DataType type, int ranks) {
    if (is_floating(type)) {
        return 16 * 1024;  // two H200s: packets and the sentinel both take 2.8 us
    }
    return ranks <= 2 ? kOneShotLimit : ranks <= 4 ? 128 * 1024 : 64 * 1024;  // not measured
}

std::size_t sentinel_preferred(int ranks) {
    // For two ranks one shot sends no more bytes than two shots, and 8M takes 28 us instead of 31
    // on two H200s. The limits for more ranks are expected, not measured: per link one shot sends
    // n-1 x the bytes, two shots less than 2 x.
    const std::size_t preferred = ranks <= 2   ? 8 * 1024 * 1024
                                  : ranks <= 4 ? 384 * 1024
                                               : 160 * 1024;
    return std::min(preferred, sentinel_limit(ranks) / 2);
}

std::size_t two_shot_preferred(int ranks) {
    // Of eight GPUs the copy engines together move less than stores do (302 GB/s instead of 320).
    if (ranks < 2 || ranks > 4) {
        return std::numeric_limits<std::size_t>::max();
    }
    return (is_emulated() ? 16 : 96) * std::size_t{1024 * 1024};
}

std::size_t sentinel_limit(int ranks) {
    const std::size_t most = ranks <= 2 ? 16 * 1024 * 1024 : 1024 * 1024;
    return is_emulated() ? most / 8 : most;
}

std::string describe(TunerReason reason, DataType type, int ranks) {
    const std::string small = format_bytes(one_shot_preferred(type, ranks));
    const std::string limit = is_floating(type) ? format_bytes(sentinel_preferred(ranks)) : small;
    switch (reason) {
        case TunerReason::kAsked:
            return "as asked";
        case TunerReason::kSmall:
            return fmt::format("up to {}: one trip, and data that arrive with their flags", small);
        case TunerReason::kMiddle:
            return fmt::format("up to {}: one trip takes less time than two barriers", limit);
        case TunerReason::kLarge:
            // Per link, one shot sends n-1 x the bytes, two shots send 2 (n-1)/n x the bytes.
            return ranks <= 2
                       ? fmt::format("above {}: one shot also writes and clears scratch memory",
                                     limit)
                       : fmt::format("above {}: one shot would send {:g} times as many bytes",
                                     limit, ranks / 2.0);
        case TunerReason::kLargest:
            return fmt::format("above {}: the copy engine moves more bytes per second",
                               format_bytes(two_shot_preferred(ranks)));
        case TunerReason::kNoWindow:
            return "a buffer lies in no window: only one shot is possible";
    }
    return "unknown";
}

TunerOverrides TunerOverrides::from_environment() {
    return {algorithm_named(env::choice("SYMM_ALGO")),
            static_cast<unsigned>(env::number("SYMM_BLOCKS")),
            static_cast<unsigned>(env::number("SYMM_THREADS"))};
}

CallPlan plan_call(const CallSize& call, Algorithm asked, const MostShapes& most,
                   const TunerOverrides& overrides) {
    if (asked == Algorithm::kAuto) {
        asked = overrides.algorithm;
    }
    const std::size_t bytes = call.count * size_of(call.type);
    const bool floating = is_floating(call.type);
    TunerReason reason = TunerReason::kAsked;
    if (asked == Algorithm::kAuto) {
        if (bytes <= one_shot_preferred(call.type, call.ranks)) {
            asked = Algorithm::kOneShot;
            reason = TunerReason::kSmall;
        } else if (floating && bytes <= sentinel_preferred(call.ranks)) {
            asked = Algorithm::kSentinel;
            reason = TunerReason::kMiddle;
        } else if (call.windows) {
            const bool largest = most.copy_engine && bytes > two_shot_preferred(call.ranks);
            asked = largest ? Algorithm::kCopy : Algorithm::kTwoShot;
            reason = largest ? TunerReason::kLargest : TunerReason::kLarge;
        } else {
            asked = floating ? Algorithm::kSentinel : Algorithm::kOneShot;
            reason = TunerReason::kNoWindow;
        }
    }
    LaunchShape limit = most.any;
    LaunchShape shape{};
    std::size_t piece = bytes;
    if (asked == Algorithm::kOneShot) {
        piece = std::min(bytes, kOneShotLimit);
        shape = shape_for((piece + 7) / 8, limit);
    } else if (asked == Algorithm::kSentinel && floating) {
        piece = std::min(bytes, sentinel_limit(call.ranks));
        limit = most.sentinel;
        shape = sentinel_shape((piece + 15) / 16, limit);
    } else if (asked == Algorithm::kSentinel) {
        throw std::invalid_argument("integers have no sentinel: use oneshot or twoshot");
    } else if (asked == Algorithm::kCopy && !most.copy_engine) {
        throw std::invalid_argument("copy needs a device for each rank: use twoshot");
    } else if (call.windows) {
        shape = shape_for(bytes / 16 / static_cast<std::size_t>(call.ranks), limit);
    } else {
        throw std::invalid_argument(fmt::format(
            "{} needs both buffers in windows (Communicator::allocate)", name_of(asked)));
    }
    if (overrides.threads != 0) {
        shape.threads = std::clamp(overrides.threads / 32 * 32, 32U, limit.threads);
    }
    if (overrides.blocks != 0) {
        shape.blocks = std::min(overrides.blocks, limit.blocks);
    }
    return {asked, shape, reason, piece / size_of(call.type)};
}

}  // namespace symm
