// The protocols of one shot (packets, sentinel) and two shots between two or three ranks, with
// small memories: call after call, across the wrap of the epochs, among packets with stale flags.
// The originals must pass; compiled as a mutant, each test must find the fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <functional>

#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"
#include "labs/06_allreduce/algorithms/tests/protocol_kernels.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 2 * ProtocolMemory::kPackets;  // elements of one shot

using Launch = decltype(&launch_protocol_one_shot);

void call_by(Launch launch, ProtocolSide& side, std::size_t count) {
    launch(side.stream.get(), side.range.pointer<ProtocolMemory>(), side.rank.rank(), count,
           side.timeout.timeout());
}

/// Calls `launch` on `ranks` ranks, `calls` times; call i has `count(i)` elements. The host waits
/// only after each 300 calls, since its limit counts all that are queued.
void call_on_ranks(int ranks, Launch launch, unsigned calls,
                   const std::function<std::size_t(unsigned)>& count, std::uint32_t epoch = 0,
                   std::uint32_t stale = 0) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        ProtocolSide side(rank, Deadline::standard_limit(), epoch, stale);
        for (unsigned call = 0; call < calls; ++call) {
            side.prepare(call);
            call_by(launch, side, count(call));
            side.compare(ranks, count(call), call);
            if (call % 300 == 299) {
                side.synchronize();
            }
        }
        side.expect_right();
    });
}

// Across the wrap of the counters.
TEST(TwoShot, IsRightCallAfterCall) {
    call_on_ranks(
        2, &launch_protocol_two_shot, 5,
        [](unsigned call) { return ProtocolMemory::kElements - 1 - call; }, 0xfffffffeU);
}

/// A call of `count` elements that rank 1 does not make: it ends, and has written nothing. All
/// blocks still count it, so that no later call has its number.
void expect_nothing_written(Launch launch, std::size_t count) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        ProtocolSide side(rank, 300ms);
        const ProtocolMemory* local = side.local;
        std::array<float, ProtocolMemory::kElements> before{};
        copy_to_host(before.data(), reinterpret_cast<CUdeviceptr>(local->out), sizeof(before));
        rank.bootstrap().barrier("read");
        if (rank.rank() == 0) {
            call_by(launch, side, count);
            EXPECT_THROW(side.synchronize(), std::runtime_error);
        }
        rank.bootstrap().barrier("given up");
        auto after = before;
        copy_to_host(after.data(), reinterpret_cast<CUdeviceptr>(local->out), sizeof(after));
        EXPECT_EQ(after, before);
        std::array<std::uint32_t, kMaxBlocks> epochs{};
        copy_to_host(epochs.data(), reinterpret_cast<CUdeviceptr>(local->one_shot.of_block),
                     sizeof(epochs));
        EXPECT_EQ(std::ranges::count(epochs, epochs[0]), kMaxBlocks)
            << "not all blocks counted the call";
        rank.bootstrap().barrier("looked");
    });
}

TEST(TwoShot, EndsWhereARankDoesNotCall) {
    expect_nothing_written(&launch_protocol_two_shot, ProtocolMemory::kElements);
}

TEST(OneShot, IsRightCallAfterCall) {
    call_on_ranks(2, &launch_protocol_one_shot, 300,
                  [](unsigned call) { return 1 + call % kMost; });
}

// All packets of fresh memory hold the flag of an epoch after the wrap. Small calls use one packet
// of each bank, and clear the others. From the wrap on, large calls use all packets.
TEST(OneShot, TakesNoFlagOfAFormerEpochForANewOne) {
    constexpr std::uint32_t kStart = 0xffffffd0U;
    constexpr std::uint32_t kStale = 3;
    constexpr unsigned kCalls = 0xffffffffU - kStart + 4;
    call_on_ranks(
        2, &launch_protocol_one_shot, kCalls,
        [](unsigned call) { return call < kCalls - 4 ? 2 : kMost; }, kStart, kStale);
}

// Some threads have no packet.
TEST(OneShot, EndsWhereARankDoesNotCall) {
    expect_nothing_written(&launch_protocol_one_shot, 20);
}

// Across the wrap of the epoch. A call has up to two packs per thread.
TEST(Sentinel, IsRightCallAfterCall) {
    call_on_ranks(
        2, &launch_protocol_sentinel, 1200,  // with one bank, 300 calls pass one time in 12
        [](unsigned call) { return 1 + call * 7 % (4 * ProtocolMemory::kPackets); }, 0xffffff80U);
}

TEST(SentinelOfOnePack, IsRightCallAfterCall) {
    call_on_ranks(
        2, &launch_protocol_one_pack, 1200, [](unsigned call) { return 4 + call * 7 % 8 * 4; },
        0xffffff80U);
}

/// A NaN's bits; repeated, they are the sentinel.
constexpr std::uint32_t kNan = 0xffffffff;

/// Makes one call by `launch`. Element i of the inputs has the bits `input(rank, i)`. The call must
/// end, and all sums must be NaNs, with the same bits on all ranks.
void expect_nans(int ranks, Launch launch,
                 const std::function<std::uint32_t(int, unsigned)>& input) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        ProtocolSide side(rank, 2s);
        std::array<std::uint32_t, 50> in{};
        for (unsigned i = 0; i < in.size(); ++i) {
            in.at(i) = input(rank.rank(), i);
        }
        copy_to_device(reinterpret_cast<CUdeviceptr>(side.local->in), in.data(), sizeof(in));
        rank.bootstrap().barrier("written");
        call_by(launch, side, in.size());
        side.synchronize();
        std::array<float, in.size()> out{};
        copy_to_host(out.data(), reinterpret_cast<CUdeviceptr>(side.local->out), sizeof(out));
        for (const float sum : out) {
            EXPECT_TRUE(std::isnan(sum));
        }
        const auto bits = std::bit_cast<std::array<std::uint32_t, in.size()>>(out);
        for (const auto& other : rank.bootstrap().allgather("results", bits)) {
            EXPECT_EQ(other, bits);
        }
    });
}

// An input with the sentinel's bits is sent, too.
TEST(Sentinel, EndsWhereTheInputHasItsBits) {
    expect_nans(2, &launch_protocol_sentinel, [](int, unsigned) { return kNan; });
}

// One word of a double may be all ones.
TEST(Sentinel, LeavesAllOtherValuesAsTheyAre) {
    for (const std::uint64_t half : {0x3ff00000ffffffffULL, 0xffffffff00000000ULL, 0ULL,
                                     0x7fffffffffffffffULL, 0xfffffffffffffffeULL}) {
        for (const std::uint64_t other : {std::uint64_t{1}, kSentinel}) {
            EXPECT_EQ(without_sentinel({{half, other}}).half[0], half);
            EXPECT_EQ(without_sentinel({{other, half}}).half[1], half);
        }
    }
}

TEST(Sentinel, IsSentAsANanOfEveryType) {
    struct Type {
        const char* name;
        unsigned bits;
        std::uint64_t exponent;
    };
    for (const std::uint64_t sent : without_sentinel({{kSentinel, kSentinel}}).half) {
        for (const Type& type : {Type{"double", 64, 0x7ff0000000000000},
                                 {"float", 32, 0x7f800000},
                                 {"half", 16, 0x7c00},
                                 {"bfloat16", 16, 0x7f80}}) {
            for (unsigned at = 0; at < 64; at += type.bits) {
                const std::uint64_t value = sent << (64 - type.bits - at) >> (64 - type.bits);
                const std::uint64_t magnitude = value & (~std::uint64_t{0} >> (65 - type.bits));
                EXPECT_GT(magnitude, type.exponent) << "not a NaN as a " << type.name;
            }
        }
    }
}

/// Three calls of `count` elements that rank 1 does not make. The third would use the bank of the
/// first again: at `bank`, rank 1 must still find packs of the first call.
void expect_one_call_sent(int ranks, Launch launch, std::size_t count, std::size_t bank,
                          const std::array<float, 4>& first_pack) {
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        ProtocolSide side(rank, 300ms);
        if (rank.rank() != 1) {
            for (unsigned call = 0; call < 3; ++call) {
                side.prepare(call);
                call_by(launch, side, count);
            }
            EXPECT_THROW(side.synchronize(), std::runtime_error);
        }
        rank.bootstrap().barrier("given up");
        if (rank.rank() == 1) {
            std::array<float, 4> arrived{};
            copy_to_host(arrived.data(), side.range.peer(1) + bank, sizeof(arrived));
            EXPECT_EQ(arrived, first_pack);
        }
        rank.bootstrap().barrier("looked");
    });
}

// Two words of data in a packet, each with its flag: the number of the first call.
TEST(OneShot, SendsNothingBehindAKernelThatGaveUp) {
    const auto flag = std::bit_cast<float>(1U);
    expect_one_call_sent(2, &launch_protocol_one_shot, 8, offsetof(ProtocolMemory, scratch[1]),
                         {0, flag, 3, flag});
}

TEST(Sentinel, SendsNothingBehindAKernelThatGaveUp) {
    expect_one_call_sent(2, &launch_protocol_sentinel, 8,
                         offsetof(ProtocolMemory, sentinel_banks[1]), {0, 3, 6, 9});
}

TEST(SentinelOfOnePack, SendsNothingBehindAKernelThatGaveUp) {
    expect_one_call_sent(2, &launch_protocol_one_pack, 8,
                         offsetof(ProtocolMemory, sentinel_banks[1]), {0, 3, 6, 9});
}

// Across the wrap of the epoch. Each rank has a part of up to two packs per thread.
TEST(Push, IsRightCallAfterCall) {
    call_on_ranks(
        ProtocolMemory::kPushRanks, &launch_protocol_push, 300,
        [](unsigned call) { return 9 + call * 7 % (12 * ProtocolMemory::kPackets - 8); },
        0xffffff80U);
}

// Ranks without a part of a call exchange no data, and still must not overtake each other. Every
// fifth call has parts for all.
TEST(Push, IsRightWherePartsAreEmpty) {
    call_on_ranks(
        ProtocolMemory::kPushRanks, &launch_protocol_push, 300,
        [](unsigned call) { return call % 5 == 4 ? 100 + call % 64 : 1 + call * 3 % 8; },
        0xffffff80U);
}

TEST(Push, EndsWhereTheInputHasTheSentinelsBits) {
    expect_nans(ProtocolMemory::kPushRanks, &launch_protocol_push,
                [](int, unsigned) { return kNan; });
}

// No input has the sentinel's bits: of every two elements, rank 0 has one NaN and rank 1 the other.
// A host adds 1 to a NaN without changing its bits. (A GPU's sums have different bits.)
TEST(Push, EndsWhereAResultHasTheSentinelsBits) {
    expect_nans(ProtocolMemory::kPushRanks, &launch_protocol_push, [](int rank, unsigned i) {
        return static_cast<int>(i % 2) == rank ? kNan : std::bit_cast<std::uint32_t>(1.0F);
    });
}

TEST(Push, SendsNothingBehindAKernelThatGaveUp) {
    expect_one_call_sent(ProtocolMemory::kPushRanks, &launch_protocol_push, 12,
                         offsetof(ProtocolMemory, push_banks[1]), {12, 15, 18, 21});
}

}  // namespace
}  // namespace symm
