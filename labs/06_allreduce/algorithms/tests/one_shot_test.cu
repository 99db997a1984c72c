// Three ranks average halves by one shot. Only sums in the order of the ranks, rounded once, have
// the expected bits. The output begins where the input ends, inside a pack: a thread that loads
// more than the input reads what another thread writes.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

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

/// Two ranks have large numbers whose sum is 0, the third a small one. Added to a large one, it
/// loses bits.
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

TEST(OneShot, AveragesHalvesOfThreeRanksInTheirOrder) {
    run_ranks({kRanks, RankMode::kThread, {}}, [](Rank& rank) {
        const SymmetricRange range(rank, sizeof(Memory));
        KernelTimeout timeout;
        const Stream stream;
        const CUdeviceptr local = range.peer(rank.rank());
        const CUdeviceptr input_at = local + offsetof(Memory, in);
        const CUdeviceptr output_at = local + offsetof(Memory, out);
        Values in{};
        Values expected{};
        for (unsigned i = 0; i < kCount; ++i) {
            in.at(i) = __float2half(input(rank.rank(), i));
            const float sum = input(0, i) + input(1, i) + input(2, i);
            expected.at(i) = __float2half(sum * static_cast<float>(1.0 / kRanks));
        }
        zero(local, sizeof(Memory));
        copy_to_device(input_at, in.data(), sizeof(in));
        rank.bootstrap().barrier("ready");
        launch(stream.get(), 2, 8,
               OneShot<__half, 4>{{input_at, output_at, kCount, Reduction(ReduceOp::kAvg, kRanks),
                                   &range.at<Memory>(rank.rank())->epochs,
                                   range.pointer<simt::Pack16>(offsetof(Memory, scratch)), kPackets,
                                   timeout.timeout(), rank.rank(), kRanks}});
        timeout.synchronize(stream, "the AllReduce");
        Values out{};
        copy_to_host(out.data(), output_at, sizeof(out));
        for (unsigned i = 0; i < kCount; ++i) {
            EXPECT_EQ(__half2float(out.at(i)), __half2float(expected.at(i)))
                << "element " << i << " on rank " << rank.rank();
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
