// What the scenes are too small for, or leave to the host: large calls, many warps, rounding.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/tests/run_as.hpp"
#include "labs/03_ipc/multicast_range.hpp"
#include "labs/06_allreduce/algorithms/multicast/multicast.hpp"
#include "labs/06_allreduce/communicator/tests/side.hpp"

namespace symm {
namespace {

class MulticastCalls : public ::testing::Test {
protected:
    void SetUp() override { SYMM_NEEDS(has_switch(3)); }
};

// One shot, two shots, a call in three pieces. Then again, with one rank's output not aligned: the
// ranks must choose alike. Three ranks, which divide no number of packs evenly.
TEST_F(MulticastCalls, OfEverySize) {
    on_ranks(3, [](Side& side) {
        constexpr std::size_t kMost = 2 * kMulticastBytes / sizeof(float) + 1;
        const CUdeviceptr in = side.allocate((kMost + 1) * sizeof(float));
        const CUdeviceptr out = side.allocate((kMost + 1) * sizeof(float));
        const std::size_t shift = side.rank.rank() == 1 ? sizeof(float) : 0;
        for (const std::size_t count : {std::size_t{1000}, std::size_t{20001}, kMost}) {
            side.reduce_and_check(in, out, count, {DataType::kFloat}, Algorithm::kMulticast);
            side.reduce_and_check(in, out + shift, count, {DataType::kFloat},
                                  Algorithm::kMulticast);
        }
    });
}

/// What becomes of one element of each rank.
template <class T>
T reduced(Side& side, const Arithmetic& arithmetic, T mine) {
    const CUdeviceptr in = side.allocate(64);
    const CUdeviceptr out = side.allocate(64);
    copy_to_device(in, &mine, sizeof(mine));
    side.rank.bootstrap().barrier("filled");
    side.call(in, out, 1, arithmetic, Algorithm::kMulticast);
    side.synchronize();
    T result;
    copy_to_host(&result, out, sizeof(result));
    return result;
}

// 256 + 1 + 1 and the like, in any order: a sum that is rounded after each step is too small.
template <class T>
void expect_rounded_once(Side& side, DataType type, float large) {
    const T mine(side.rank.rank() == 0 ? large : 1.0F);
    for (int again = 0; again < 10; ++again) {
        EXPECT_EQ(static_cast<float>(reduced(side, {type}, mine)), large + 2);
    }
}
TEST_F(MulticastCalls, OfShortFloatsRoundOnce) {
    on_ranks(3, [](Side& side) {
        expect_rounded_once<__nv_bfloat16>(side, DataType::kBfloat16, 256);
        expect_rounded_once<__half>(side, DataType::kHalf, 2048);
    });
}

// Neighbours that are the same number as a double.
TEST_F(MulticastCalls, OfIntegersAreExact) {
    on_ranks(3, [](Side& side) {
        constexpr std::int64_t kLarge = std::int64_t{1} << 60;
        for (const DataType type : {DataType::kInt64, DataType::kUint64}) {
            for (const auto& [op, result] :
                 {std::pair(ReduceOp::kMin, kLarge), std::pair(ReduceOp::kMax, kLarge + 2),
                  std::pair(ReduceOp::kSum, 3 * kLarge + 3),
                  std::pair(ReduceOp::kAvg, kLarge + 1)}) {
                EXPECT_EQ(reduced(side, {type, op}, kLarge + side.rank.rank()), result);
            }
        }
    });
}

// More warps than twice the ranks, each with packs: every pack has one rank that adds it up.
TEST_F(MulticastCalls, OfManyWarps) {
    constexpr unsigned kBlocks = 7;
    constexpr std::size_t kCount = 4 * 32 * kBlocks * 2 + 1;
    struct Memory {
        ArrivalCounts counts;
        alignas(128) simt::Pack16 data[kCount / 4 + 1];
    };
    testing::run_as(RankMode::kThread, 2, [](Rank& rank) {
        const CurrentContext current(rank.gpu());
        const MulticastRange range(rank, sizeof(Memory));
        const DeviceMemory in(sizeof(float) * kCount), out(sizeof(float) * kCount);
        std::vector<float> values(kCount);
        std::iota(values.begin(), values.end(), static_cast<float>(rank.rank()));
        copy_to_device(in.address(), values.data(), sizeof(float) * kCount);
        KernelTimeout timeout;
        auto* const own = range.own<Memory>();
        auto* const all = range.all<Memory>();
        const KernelParams call{{Reduction(ReduceOp::kSum, 2), timeout.timeout(), rank.rank(), 2},
                                Call({DataType::kFloat}, in.address(), out.address(), kCount)};
        const MulticastParams params{
            call, {&own->counts, &all->counts, rank.rank(), 2}, own->data, all->data, true};
        rank.bootstrap().barrier("filled");
        const Stream stream;
        launch(stream.get(), kBlocks, 32, Multicast<float>{params});
        timeout.synchronize(stream, "the call");
        copy_to_host(values.data(), out.address(), sizeof(float) * kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(values[i], static_cast<float>(2 * i + 1)) << i;
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
