#include "labs/06_allreduce/algorithms/algorithm.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "common/cuda/driver.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/peer_slots.hpp"

namespace symm {

#define SYMM_EXTERN(kernels) extern const AlgorithmKernels kernels;
SYMM_ALL_KERNELS(SYMM_EXTERN)
#undef SYMM_EXTERN

namespace {

unsigned divide_up(std::size_t items, std::size_t by) {
    return static_cast<unsigned>(std::min<std::size_t>((items + by - 1) / by, 1U << 30));
}

/// Of kernels with the sentinel: a pack of 16 bytes per thread, in blocks as small as their number
/// allows, since a block waits for its slowest thread. On four H200s, 4K and 64K take 2.85 and 3.48
/// us with blocks of 128 threads, and 2.97 and 3.56 us with 256.
LaunchShape sentinel_shape(std::size_t packs, const LaunchShape& most) {
    const unsigned few = std::min(most.blocks, 64U);
    const unsigned threads = packs <= few * 128                        ? 128
                             : packs <= std::size_t{most.blocks} * 256 ? 256
                                                                       : 512;
    return shape_for(packs, {most.blocks, std::min(threads, most.threads)});
}

/// What `blocks` blocks should move by the sentinel: they should push at most twice as much. Two
/// shots need fewer blocks to fill a link. Measured on two and four H100s with 16, 32 and 64.
std::size_t enough_for_sentinel(unsigned blocks) {
    return is_emulated() ? kAnySize : blocks * std::size_t{64} << 10;
}

/// Fewer than 64 blocks cannot fill a link with chunks, because they also wait for flags. On two
/// and on four H100s, with 16 blocks two shots take 0.7 to 0.9 times as long, with 32 as long, and
/// with 64 longer.
std::size_t enough_for_chunks(unsigned blocks) {
    return is_emulated() || blocks >= 64 ? kAnySize : 0;
}

/// What slots take of each part, with a pack left for elements after the last whole one.
std::size_t slot_at_once(int ranks) {
    return peer_slot_bytes(ranks) - sizeof(simt::Pack16);
}
std::size_t slots_at_once(int ranks) {
    return slot_at_once(ranks) * static_cast<std::size_t>(ranks);
}

std::size_t packets_at_once(int) {
    return kOneShotLimit;
}

// Fewer cannot add up in time: on four H200s, 512M takes 2.26 ms with 32 blocks, 2.18 with 64.
constexpr unsigned kCopyBlocks = 64;

/// Above these bytes, copies take less time than chunks through scratch memory, though each begins
/// some 4 us after the previous one: from the times of both on two and four H200s. With 64 blocks
/// on two, 128M takes 400 us by copies and 458 in chunks; with 128 blocks, 395 and 389.
std::size_t copies_pay_above(int ranks, unsigned blocks) {
    return std::size_t{ranks <= 2 && blocks < 128 ? 64U
                       : ranks > 2 && ranks <= 4  ? 64U
                                                  : 128U}
           << 20;
}

/// Above these bytes, chunks take less time than packets in pieces: measured like the others.
template <std::size_t kMiB>
std::size_t chunks_pay_above(int, unsigned) {
    return kMiB << 20;
}

// The rows of algorithms that make several collectives.

constexpr AlgorithmRow one_shot(Collective collective, const AlgorithmKernels& kernels) {
    return {.collective = collective,
            .algorithm = Algorithm::kOneShot,
            .stands_in = StandsIn::kOutside,
            .cost = {.bytes_per_thread = 8, .at_once = packets_at_once},
            .texts = {"up to {up_to}: one trip, and flags arrive with the data"},
            .kernels = &kernels};
}

constexpr std::string_view kFlags = "above {above}: half of a packet's bytes are flags";

constexpr AlgorithmRow two_shot(Collective collective, std::string_view why) {
    return {.collective = collective,
            .algorithm = Algorithm::kTwoShot,
            .stands_in = StandsIn::kInWindows,
            .needs = {.windows = true, .addresses = true},
            .cost = {.by_parts = !row_of(collective).has_parts()},
            .texts = {why},
            .kernels = &kTwoShotKernels};
}

constexpr AlgorithmRow chunks(Collective collective) {
    const bool reduces_all = collective == Collective::kAllReduce;
    const bool scatters = collective == Collective::kReduceScatter;
    return {.collective = collective,
            .algorithm = Algorithm::kChunks,
            .needs = {.windows = !scatters, .or_slots = true, .addresses = true},
            .cost = {.for_links = true,
                     .by_parts = reduces_all,
                     .at_once = reduces_all ? slots_at_once : slot_at_once,
                     .enough_for = enough_for_chunks,
                     .outside_windows_above = scatters ? chunks_pay_above<2> : chunks_pay_above<1>},
            .texts = {"above {above}: stores cross a link faster than loads"},
            .kernels = &kChunksKernels};
}

constexpr AlgorithmRow copy(Collective collective) {
    return {.collective = collective,
            .algorithm = Algorithm::kCopy,
            .needs = {.own_device = true},
            .cost = {.by_parts = collective == Collective::kAllReduce,
                     .most_blocks = kCopyBlocks,
                     .outside_windows_above = copies_pay_above},
            .texts = {"above {above}: the copy engine moves more bytes per second"},
            .kernels = &kCopyKernels};
}

constexpr std::array kBuiltIn{
    one_shot(Collective::kAllReduce, kOneShotKernels),
    AlgorithmRow{.collective = Collective::kAllReduce,
                 .algorithm = Algorithm::kSentinel,
                 .stands_in = StandsIn::kOutside,
                 .needs = {.floating_only = true},
                 .cost = {.small_kernels = true,
                          .at_once = sentinel_limit,
                          .enough_for = enough_for_sentinel,
                          .shape = sentinel_shape},
                 .texts = {"up to {up_to}: one trip takes less time than two barriers"},
                 .kernels = &kSentinelKernels},
    // Per link, one shot sends n - 1 times the bytes, two shots send 2 (n - 1) / n times the bytes.
    AlgorithmRow{
        .collective = Collective::kAllReduce,
        .algorithm = Algorithm::kPush,
        .stands_in = StandsIn::kOutside,
        .needs = {.floating_only = true},
        .cost = {.small_kernels = true,
                 .by_parts = true,
                 .at_once = push_limit,
                 .enough_for = [](unsigned blocks) { return enough_for_sentinel(2 * blocks); },
                 .shape = sentinel_shape},
        .texts = {"above {above}: one shot would send {times:g} times as many bytes"},
        .kernels = &kPushKernels},
    two_shot(Collective::kAllReduce,
             "above {above}: staging through scratch memory costs an extra pass to clear it"),
    chunks(Collective::kAllReduce),
    copy(Collective::kAllReduce),
    AlgorithmRow{.collective = Collective::kAllReduce,
                 .algorithm = Algorithm::kMulticast,
                 .needs = {.in_switch = true, .own_device = true},
                 .cost = {.at_once = [](int) { return kMulticastBytes; }},
                 .texts = {"never by itself: multicast was not run on a GPU by us"},
                 .kernels = &kMulticastKernels},

    one_shot(Collective::kReduceScatter, kReduceScatterPacketsKernels),
    two_shot(Collective::kReduceScatter, kFlags),
    chunks(Collective::kReduceScatter),
    copy(Collective::kReduceScatter),

    one_shot(Collective::kAllGather, kAllGatherPacketsKernels),
    two_shot(Collective::kAllGather, kFlags),
    chunks(Collective::kAllGather),
    copy(Collective::kAllGather),

    one_shot(Collective::kBroadcast, kBroadcastPacketsKernels),
    two_shot(Collective::kBroadcast, kFlags),

    one_shot(Collective::kReduce, kReducePacketsKernels),
    two_shot(Collective::kReduce, kFlags),
};

/// The same, and room for more.
template <class T, std::size_t kCount>
constexpr std::array<T, kCount + kMostLoaded> with_room(const std::array<T, kCount>& built_in) {
    std::array<T, kCount + kMostLoaded> all{};
    std::ranges::copy(built_in, all.begin());
    return all;
}

constinit auto rows = with_room(kBuiltIn);
constinit auto all_algorithms_names = with_room(kNamesOf<Algorithm>.values);
std::atomic<std::size_t> loaded_count{0};

}  // namespace

LaunchShape shape_for(std::size_t items, const LaunchShape& most) {
    items = std::max<std::size_t>(items, 1);
    const unsigned threads =
        std::clamp(std::min(divide_up(items, 32), 32U) * 32, 32U, most.threads);
    return {std::clamp(divide_up(items, threads), 1U, most.blocks), threads};
}

std::span<const AlgorithmRow> algorithm_rows() {
    return std::span(rows).first(kBuiltIn.size() + loaded_count.load(std::memory_order_acquire));
}

std::span<const std::string_view> all_names(Algorithm) {
    return std::span(all_algorithms_names)
        .first(kAlgorithms + 1 + loaded_count.load(std::memory_order_acquire));
}

void add_algorithm(std::string_view name, const AlgorithmRow& row) {
    const std::size_t place = loaded_count.load(std::memory_order_relaxed);
    all_algorithms_names.at(kAlgorithms + 1 + place) = name;
    rows.at(kBuiltIn.size() + place) = row;
    loaded_count.store(place + 1, std::memory_order_release);
}

bool AlgorithmRow::supports(DataType type, ReduceOp op) const {
    const bool short_floats = type == DataType::kHalf || type == DataType::kBfloat16;
    const bool sums = op == ReduceOp::kSum || op == ReduceOp::kAvg;
    const bool compares = op != ReduceOp::kProd && (short_floats || !is_floating(type));
    const bool in_switch = size_of(type) >= 2 && (sums || compares);
    return (!needs.floating_only || is_floating(type)) && (!needs.in_switch || in_switch);
}

const AlgorithmRow* find_row(Collective collective, Algorithm algorithm) {
    const auto all = algorithm_rows();
    const auto found = std::ranges::find_if(all, [&](const AlgorithmRow& row) {
        return row.collective == collective && row.algorithm == algorithm;
    });
    return found == all.end() ? nullptr : &*found;
}

std::string alternatives(Collective collective, bool (*fit)(const AlgorithmRow&)) {
    std::vector<std::string_view> names;
    for (const AlgorithmRow& row : algorithm_rows()) {
        if (row.collective == collective && fit(row)) {
            names.push_back(name_of(row.algorithm));
        }
    }
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
        list += fmt::format("{}{}", i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
    }
    return list;
}

std::size_t sentinel_limit(int ranks) {
    const std::size_t most = ranks <= 2 ? 16 * 1024 * 1024 : 1024 * 1024;
    return is_emulated() ? most / 8 : most;
}

std::size_t push_limit(int ranks) {
    // Two ranks have the sentinel, which sends the same bytes in one trip.
    const std::size_t most = ranks <= 2 ? 512 * 1024 : 16 * 1024 * 1024;
    return is_emulated() ? most / 32 : most;
}

}  // namespace symm
