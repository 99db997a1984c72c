// Three ranks add up numbers whose sum depends on the order: all ranks must use the same order.

#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/sentinel/sentinel.hpp"

namespace symm {
namespace {

constexpr int kRanks = 3;
constexpr unsigned kCount = 48;
constexpr unsigned kCalls = 6;
constexpr ReduceOp kOps[kCalls] = {ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kSum,
                                   ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProd};
constexpr std::size_t kPacks = kCount * sizeof(float) / sizeof(simt::Pack16);

using Bits = std::array<std::uint32_t, kCount>;

struct Memory {
    Epochs epochs;
    alignas(16) simt::Pack16 banks[2][kRanks - 1][kPacks];
    alignas(16) float in[kCalls][kCount];
    alignas(16) float out[kCalls][kCount];
};

/// One of the ranks has 2^24, where floats are 2 apart. The others have small numbers.
float input(int rank, unsigned call, unsigned i) {
    const float small = static_cast<float>(1 + 2 * (call % 4));
    return (i + call) % kRanks == static_cast<unsigned>(rank) ? 16777216.0F : small;
}

/// The result, if combined in the order of the ranks.
float exact(unsigned call, unsigned i) {
    float result = input(0, call, i);
    for (int p = 1; p < kRanks; ++p) {
        const float next = input(p, call, i);
        result = kOps[call] == ReduceOp::kProd ? result * next : result + next;
    }
    return kOps[call] == ReduceOp::kAvg ? result * static_cast<float>(1.0 / kRanks) : result;
}

CUdeviceptr address_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

TEST(SameBits, OnAllRanks) {
    run_ranks({kRanks, RankMode::kThread, {}}, [](Rank& rank) {
        const SymmetricRange range(rank, sizeof(Memory));
        KernelTimeout timeout;
        const Stream stream;
        auto* const local = range.at<Memory>(rank.rank());
        zero(range.local(), sizeof(Memory));
        fill(range.local() + offsetof(Memory, banks), 0xff, sizeof(Memory::banks));
        for (unsigned call = 0; call < kCalls; ++call) {
            std::array<float, kCount> in{};
            for (unsigned i = 0; i < kCount; ++i) {
                in.at(i) = input(rank.rank(), call, i);
            }
            copy_to_device(address_of(local->in[call]), in.data(), sizeof(in));
        }
        rank.bootstrap().barrier("reset");
        for (unsigned call = 0; call < kCalls; ++call) {
            launch(
                stream.get(), 2, 4,
                Sentinel<float, 4>{
                    {{Reduction(kOps[call], kRanks), timeout.timeout(), rank.rank(), kRanks},
                     {&local->epochs, range.pointer<simt::Pack16>(offsetof(Memory, banks)), kPacks},
                     {{}, address_of(local->in[call]), address_of(local->out[call]), kCount}}});
        }
        timeout.synchronize(stream, "the AllReduces");
        for (unsigned call = 0; call < kCalls; ++call) {
            Bits bits{};
            copy_to_host(bits.data(), address_of(local->out[call]), sizeof(bits));
            const auto all = rank.bootstrap().allgather("results", bits);
            unsigned wrong = 0;
            unsigned different = 0;
            unsigned reordered = 0;
            for (unsigned i = 0; i < kCount; ++i) {
                const float difference = std::bit_cast<float>(bits.at(i)) - exact(call, i);
                wrong += difference >= -4 && difference <= 4 ? 0 : 1;
                different += bits.at(i) == all[0].at(i) ? 0 : 1;
                reordered += bits.at(i) == std::bit_cast<std::uint32_t>(exact(call, i)) ? 0 : 1;
            }
            EXPECT_EQ(wrong, 0U) << "wrong " << name_of(kOps[call]) << " on rank " << rank.rank()
                                 << " in call " << call;
            EXPECT_EQ(different, 0U) << "rank " << rank.rank() << "'s bits differ from rank 0's";
            EXPECT_EQ(reordered, 0U) << "rank " << rank.rank() << " adds in another order than the "
                                     << "ranks'";
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
