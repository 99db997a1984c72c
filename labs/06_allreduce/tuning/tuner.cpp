#include "labs/06_allreduce/tuning/tuner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "common/cuda/driver.hpp"
#include "common/sys/bytes.hpp"
#include "common/sys/environment.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"

namespace symm {
namespace {

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

/// The table's choice, if the call can use it, else the best alternative.
struct Choice {
    Algorithm algorithm;
    TunerReason reason;
    std::size_t limit;
};

/// The most bytes that `blocks` blocks should move by the sentinel. They should push at most twice
/// as many. Above that, two shots are faster: they need fewer blocks to fill a link. Measured on
/// two and four H100s with 16, 32 and 64 blocks.
std::size_t sentinel_limit_of_blocks(unsigned blocks) {
    return is_emulated() ? std::numeric_limits<std::size_t>::max() : blocks * std::size_t{64} << 10;
}

/// Whether `blocks` blocks are enough to send chunks. Fewer cannot fill a link, because they also
/// wait for flags. On two and on four H100s, with 16 blocks two shots take 0.7 to 0.9 times as
/// long, with 32 as long, and with 64 longer.
bool has_blocks_for_chunks(unsigned blocks) {
    return is_emulated() || blocks >= 64;
}

Choice choose(const CallSize& call, const Tuner& tuner) {
    const bool floating = is_floating(call.type);
    const TuningRow& row = tuner.table.row(call.ranks, floating);
    const std::size_t bytes = call.count * size_of(call.type);
    const std::size_t of_blocks = sentinel_limit_of_blocks(tuner.most.sentinel.blocks);
    // The best algorithm without windows. Larger calls take it in pieces.
    const Algorithm any_memory = !floating         ? Algorithm::kOneShot
                                 : call.ranks <= 2 ? Algorithm::kSentinel
                                                   : Algorithm::kPush;
    switch (row.algorithm(bytes)) {
        case Algorithm::kOneShot:
            return {Algorithm::kOneShot, TunerReason::kSmall, row.limit(Algorithm::kOneShot)};
        case Algorithm::kSentinel:
            if (call.in_windows && bytes > of_blocks) {
                return {Algorithm::kTwoShot, TunerReason::kFewBlocks, of_blocks};
            }
            return {Algorithm::kSentinel, TunerReason::kMiddle, row.limit(Algorithm::kSentinel)};
        case Algorithm::kPush:
            if (call.in_windows && bytes / 2 > of_blocks) {
                return {Algorithm::kTwoShot, TunerReason::kFewBlocks, of_blocks * 2};
            }
            return {Algorithm::kPush, TunerReason::kPushed, row.above(Algorithm::kPush)};
        case Algorithm::kChunks:
            // Where ranks share a device, data crosses no link, and scratch memory costs a pass.
            if (tuner.most.copy_engine && call.in_windows) {
                const std::size_t above = row.above(Algorithm::kChunks);
                return has_blocks_for_chunks(tuner.most.any.blocks)
                           ? Choice{Algorithm::kChunks, TunerReason::kChunked, above}
                           : Choice{Algorithm::kTwoShot, TunerReason::kFewBlocks, above};
            }
            break;
        case Algorithm::kCopy:
            if (tuner.most.copy_engine) {  // from any memory
                return {Algorithm::kCopy, TunerReason::kLargest, row.above(Algorithm::kCopy)};
            }
            break;
        default:
            break;
    }
    return call.in_windows ? Choice{Algorithm::kTwoShot, TunerReason::kLarge, row.limit(any_memory)}
                           : Choice{any_memory, TunerReason::kNoWindow, 0};
}

/// The largest part of a ReduceScatter or an AllGather, in bytes, that kernels send faster than the
/// copy engine does: its stores are faster than its loads. Measured on two, four and eight GPUs.
std::size_t half_by_kernels(Collective half, int ranks) {
    const bool gathers = half == Collective::kAllGather;
    const std::size_t all = ranks <= 2             ? (gathers ? 512 : 256)
                            : gathers || ranks > 4 ? 256
                                                   : 128;  // MiB
    return (all << (is_emulated() ? 17 : 20)) / static_cast<std::size_t>(std::max(ranks, 2));
}

/// For a ReduceScatter or an AllGather: packets, the two-shot kernel, which makes only one shot, or
/// the copy engine.
Choice choose_half(const CallSize& call, const Tuner& tuner) {
    if (const std::size_t most = half_by_kernels(call.collective, call.ranks);
        tuner.most.copy_engine && call.count * size_of(call.type) > most) {
        return {Algorithm::kCopy, TunerReason::kLargestHalf, most};
    }
    // In bytes of a part; half of a packet's bytes are flags. Measured on two and on four GPUs.
    const std::size_t limit =
        is_emulated() ? 2 << 10 : (1 << 20) / static_cast<std::size_t>(std::max(call.ranks, 2));
    if (call.count * size_of(call.type) <= limit) {
        return {Algorithm::kOneShot, TunerReason::kSmall, limit};
    }
    return call.in_windows ? Choice{Algorithm::kTwoShot, TunerReason::kLargeHalf, limit}
                           : Choice{Algorithm::kOneShot, TunerReason::kNoWindow, 0};
}

}  // namespace

std::size_t sentinel_limit(int ranks) {
    const std::size_t most = ranks <= 2 ? 16 * 1024 * 1024 : 1024 * 1024;
    return is_emulated() ? most / 8 : most;
}

std::size_t push_limit(int ranks) {
    // Two ranks have the sentinel, which sends the same bytes in one trip.
    const std::size_t most = ranks <= 2 ? 512 * 1024 : 16 * 1024 * 1024;
    return is_emulated() ? most / 32 : most;
}

std::size_t chunks_limit(int ranks) {
    return copy_slot_bytes(ranks) * static_cast<std::size_t>(ranks);
}

unsigned chunk_packs(int ranks) {
    // As many as a block's threads have in flight for each peer (TwoShotChunks::kAtOnce).
    return (is_emulated() ? 32 : kMostThreads) * (ranks <= 2 ? 8 : ranks <= 4 ? 4 : 2);
}

bool may_use_chunks_or_copy(std::size_t bytes, int ranks, const Tuner& tuner) {
    const auto chosen = [&](DataType type) {
        return choose({type, bytes / size_of(type), ranks, true}, tuner).algorithm;
    };
    const bool halves =
        tuner.most.copy_engine && bytes / static_cast<std::size_t>(ranks) >
                                      half_by_kernels(Collective::kReduceScatter, ranks);
    return halves || std::max({tuner.overrides.algorithm, chosen(DataType::kFloat),
                               chosen(DataType::kInt32)}) >= Algorithm::kChunks;
}

std::string describe(const CallPlan& plan, int ranks) {
    const std::string limit = plan.limit == std::numeric_limits<std::size_t>::max()
                                  ? "any size"
                                  : format_bytes(plan.limit);
    switch (plan.reason) {
        case TunerReason::kAsked:
            return "as requested";
        case TunerReason::kSmall:
            return fmt::format("up to {}: one trip, and flags arrive with the data", limit);
        case TunerReason::kMiddle:
            return fmt::format("up to {}: one trip takes less time than two barriers", limit);
        case TunerReason::kPushed:
            // Per link, one shot sends n-1 x the bytes, two shots send 2 (n-1)/n x the bytes.
            return fmt::format("above {}: one shot would send {:g} times as many bytes", limit,
                               ranks / 2.0);
        case TunerReason::kLarge:
            return fmt::format(
                "above {}: staging through scratch memory costs an extra pass to clear it", limit);
        case TunerReason::kChunked:
            return fmt::format("above {}: stores cross a link faster than loads", limit);
        case TunerReason::kFewBlocks:
            return fmt::format("above {}: with this few blocks, two shots are faster", limit);
        case TunerReason::kLargest:
            return fmt::format("above {}: the copy engine moves more bytes per second", limit);
        case TunerReason::kLargeHalf:
            return fmt::format("parts above {}: half of a packet's bytes are flags", limit);
        case TunerReason::kLargestHalf:
            return fmt::format("parts above {}: the copy engine moves more bytes per second",
                               limit);
        case TunerReason::kNoWindow:
            return "a buffer is not in a window: it goes through scratch memory";
    }
    return "unknown";
}

TunerOverrides TunerOverrides::from_environment() {
    return {named<Algorithm>("--algo", env::choice("SYMM_ALGO")),
            static_cast<unsigned>(env::number("SYMM_BLOCKS")),
            static_cast<unsigned>(env::number("SYMM_THREADS"))};
}

CallPlan plan_call(const CallSize& call, Algorithm asked, const Tuner& tuner) {
    const auto& [table, most, overrides] = tuner;
    if (asked == Algorithm::kAuto) {
        asked = overrides.algorithm;
    }
    const bool is_half = call.collective != Collective::kAllReduce;
    const Choice choice = asked != Algorithm::kAuto ? Choice{asked, TunerReason::kAsked, 0}
                          : is_half                 ? choose_half(call, tuner)
                                                    : choose(call, tuner);
    asked = choice.algorithm;
    if (is_half && !makes_halves(asked)) {
        throw std::invalid_argument(
            fmt::format("{} does not support {}: use oneshot, twoshot or copy",
                        name_of(call.collective), name_of(asked)));
    }
    const std::size_t bytes = call.count * size_of(call.type);
    const bool floating = is_floating(call.type);
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
    } else if (asked == Algorithm::kPush && floating) {
        piece = std::min(bytes, push_limit(call.ranks));
        limit = most.sentinel;
        shape = sentinel_shape(divide_up(piece, 16 * static_cast<std::size_t>(call.ranks)), limit);
    } else if (is_floating_only(asked)) {
        throw std::invalid_argument("integers have no sentinel: use oneshot or twoshot");
    } else if (asked == Algorithm::kCopy && !most.copy_engine) {
        throw std::invalid_argument("copy needs one device per rank: use twoshot");
    } else if (call.in_windows || asked == Algorithm::kCopy) {
        const auto parts = static_cast<std::size_t>(is_half ? 1 : call.ranks);
        shape = shape_for(bytes / 16 / parts, limit);
        if (asked == Algorithm::kCopy) {
            shape.blocks = std::min(shape.blocks, TwoShotCopy::kBlocks);
        } else if (asked == Algorithm::kChunks) {
            piece = std::min(bytes, chunks_limit(call.ranks));
        }
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
    return {asked, shape, choice.reason, choice.limit, piece / size_of(call.type)};
}

}  // namespace symm
