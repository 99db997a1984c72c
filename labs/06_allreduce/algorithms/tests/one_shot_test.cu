// Three ranks average halves by one shot. Only sums in the order of the ranks, rounded once, have
// the expected bits. The output begins where the input ends, inside a pack: a thread that loads
// beyond the input reads elements that another thread writes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/one_shot/one_shot.hpp"

namespace symm {
namespace {

constexpr int kRanks = 3;
constexpr unsigned kCount = 29;
constexpr std::size_t kPackets = 8;

using Values = std::array<__half, kCount>;

struct Memory {
    Epochs epochs;
    alignas(16) simt::Pack16 scratch[2][kRanks - 1][kPackets];
    alignas(8) __half in[kCount];
    __half out[kCount];
};

/// Two ranks have large numbers whose sum is 0, the third has a small one. Added to a large number,
/// the small one loses bits.
float input(int rank, unsigned i) {
    switch ((static_cast<unsigned>(rank) + i) % kRanks) {
        case 0:
            return 60000;
        case 1:
            return -60000;
        default:
            return static_cast<float>(i % 4 * 2 + 1) / 4096;
    }
}

/// A rank and its memory.
struct Side {
    explicit Side(Rank& r, std::chrono::nanoseconds limit = Deadline::standard_limit())
        : rank(r), range(r, sizeof(Memory)), timeout(limit) {
        zero(range.local(), sizeof(Memory));
    }
    CUdeviceptr at(std::size_t offset) const { return range.local() + offset; }
    /// Queues a kernel for the average of `count` elements.
    void start(unsigned blocks, unsigned threads, std::size_t count) const {
        launch(stream.get(), blocks, threads,
               OneShot<__half, 4>{
                   {{Reduction(ReduceOp::kAvg, kRanks), timeout.timeout(), rank.rank(), kRanks},
                    {&range.at<Memory>(rank.rank())->epochs,
                     range.pointer<simt::Pack16>(offsetof(Memory, scratch)), kPackets},
                    {{}, at(offsetof(Memory, in)), at(offsetof(Memory, out)), count}}});
    }
    void synchronize() { timeout.synchronize(stream, "the AllReduces"); }

    Rank& rank;
    SymmetricRange range;
    KernelTimeout timeout;
    Stream stream;
};

TEST(OneShot, AveragesHalvesOfThreeRanksInTheirOrder) {
    run_ranks({kRanks, RankMode::kThread, {}}, [](Rank& rank) {
        Side side(rank);
        Values in{};
        Values expected{};
        for (unsigned i = 0; i < kCount; ++i) {
            in.at(i) = __float2half(input(rank.rank(), i));
            const float sum = input(0, i) + input(1, i) + input(2, i);
            expected.at(i) = __float2half(sum * static_cast<float>(1.0 / kRanks));
        }
        copy_to_device(side.at(offsetof(Memory, in)), in.data(), sizeof(in));
        rank.bootstrap().barrier("ready");
        side.start(2, 8, kCount);
        side.synchronize();

        Values out{};
        copy_to_host(out.data(), side.at(offsetof(Memory, out)), sizeof(out));
        for (unsigned i = 0; i < kCount; ++i) {
            EXPECT_EQ(__half2float(out.at(i)), __half2float(expected.at(i)))
                << "element " << i << " on rank " << rank.rank();
        }
        rank.bootstrap().barrier("done");
    });
}

constexpr simt::Pack16 kStale{{0x8000000000000000, 0x8000000000000000}};
using Slots = std::array<simt::Pack16, 2 * (kRanks - 1) * kPackets>;

void make_slots_stale(const Side& side) {
    Slots slots;
    slots.fill(kStale);
    copy_to_device(side.at(offsetof(Memory, scratch)), slots.data(), sizeof(slots));
}
auto count_stale(const Side& side) {
    Slots slots;
    copy_to_host(slots.data(), side.at(offsetof(Memory, scratch)), sizeof(slots));
    return std::ranges::count(slots, kStale.half[0],
                              [](const simt::Pack16& slot) { return slot.half[0]; });
}

// Each call uses one packet of a bank or two, and has at most as many threads as peers.
TEST(OneShot, ClearsTheSlotsOfAllPeersInTurn) {
    for (const unsigned blocks : {1U, 2U}) {
        run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
            Side side(rank);
            make_slots_stale(side);
            const auto stale_after = [&](unsigned calls) {
                rank.bootstrap().barrier("ready");
                for (unsigned call = 0; call < calls; ++call) {
                    side.start(blocks, 1, call / 2 % 2 == 0 ? 4 : 8);
                }
                side.synchronize();
                rank.bootstrap().barrier("done");
                return count_stale(side);
            };
            EXPECT_GE(stale_after(2), std::ssize(Slots{}) - 4 * (kRanks - 1))
                << "a call has cleared more than one slot per peer";
            EXPECT_EQ(stale_after(2 * kPackets - 2), 0) << "some slots were never cleared";
        });
    }
}

// Rank 0 calls alone. It sends one packet to each peer, and clears the next slots.
TEST(OneShot, ClearsSlotsOfItsOwnMemoryOnly) {
    run_ranks({kRanks, RankMode::kThread, {}}, [](Rank& rank) {
        Side side(rank, std::chrono::milliseconds(100));
        make_slots_stale(side);
        Epochs epochs;
        std::ranges::fill(epochs.of_block, 1U);
        copy_to_device(side.at(offsetof(Memory, epochs)), &epochs, sizeof(epochs));
        rank.bootstrap().barrier("ready");
        if (rank.rank() == 0) {
            side.start(1, 4, 4);
            EXPECT_THROW(side.synchronize(), std::runtime_error);
        }
        rank.bootstrap().barrier("given up");
        if (rank.rank() != 0) {
            EXPECT_EQ(count_stale(side), std::ssize(Slots{}) - 1)
                << "slots were cleared in a peer's memory";
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
