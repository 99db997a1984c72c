// The fastest kernel alone, for the course: calls of its size and smaller ones, on two, three and
// five ranks, without a communicator.

#include "symm/examples/fastest.cu"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"

namespace symm {
namespace {

constexpr std::size_t kCount = 64 * 1024 / sizeof(float);
constexpr std::size_t kGuard = 64;  // elements behind the output
constexpr unsigned kThreads = 128;
constexpr std::size_t kBlocks = 4;  // for which emulated GPUs have room, with two ranks on each

/// A rank's buffers and memory.
struct Side {
    explicit Side(Rank& of)
        : rank(of),
          own(of, OwnMemory::bytes(of.size(), kFastest.slots_per_peer)),
          buffers(of, 2 * (kCount + kGuard) * sizeof(float)) {
        zero(own.local(), own.size());
        if (kFastest.has_sentinel) {
            fill(own.local() + offsetof(OwnMemory, slots), 0xff,
                 own.size() - offsetof(OwnMemory, slots));
        }
    }
    CUdeviceptr in() const { return buffers.local(); }
    CUdeviceptr out() const { return in() + (kCount + kGuard) * sizeof(float); }

    template <class Kernel>
    void launch_kernel(std::size_t count) {
        const SymmetricPointer<OwnMemory> memory = own.pointer<OwnMemory>();
        Kernel kernel{
            {{{Reduction(ReduceOp::kSum, rank.size()), timeout.timeout(), rank.rank(), rank.size()},
              mailbox_of(memory, rank.rank(), kFastest.slots_per_peer),
              {{DataType::kFloat, ReduceOp::kSum}, in(), out(), count}},
             {memory.member(&OwnMemory::rendezvous), rank.rank(), rank.size(), {}},
             {memory.member(&OwnMemory::barrier), rank.rank(), rank.size()},
             memory.member(&OwnMemory::turns)}};
        std::fill_n(kernel.rendezvous.mine, rank.size(), Buffers{in(), out()});
        const std::size_t threads = count * sizeof(float) / kFastest.bytes_per_thread;
        launch(stream.get(), static_cast<unsigned>(std::clamp(threads / kThreads, 1UL, kBlocks)),
               kThreads, kernel);
    }

    Rank& rank;
    SymmetricRange own, buffers;
    KernelTimeout timeout;
    Stream stream;
};

/// Rounded in a sum. No two ranks, calls or elements have the same.
float input(int rank, unsigned call, std::size_t i) {
    return std::sqrt(static_cast<float>(1 + i + kCount * (8 * call + static_cast<unsigned>(rank))));
}

class Fast : public ::testing::TestWithParam<int> {};

TEST_P(Fast, AddsUpWithTheSameBitsOnAllRanks) {
    const int ranks = GetParam();
    std::vector<std::vector<float>> sums(static_cast<std::size_t>(ranks));
    run_ranks({ranks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank);
        unsigned call = 0;
        for (const std::size_t count : {kCount, kCount, kCount - 3, std::size_t{1}, kCount}) {
            std::vector<float> in(kCount + kGuard);
            for (std::size_t i = 0; i < in.size(); ++i) {
                in[i] = input(rank.rank(), call, i);
            }
            std::vector<float> out(kCount + kGuard, -1);
            copy_to_device(side.in(), in.data(), in.size() * sizeof(float));
            copy_to_device(side.out(), out.data(), out.size() * sizeof(float));
            rank.bootstrap().barrier("ready");
            ranks <= 4 ? side.launch_kernel<Fastest<float, 4>>(count)
                       : side.launch_kernel<Fastest<float, 8>>(count);
            side.timeout.synchronize(side.stream, "the call");
            copy_to_host(out.data(), side.out(), out.size() * sizeof(float));
            for (std::size_t i = 0; i < out.size(); ++i) {
                double sum = -1;  // behind the last element
                for (int p = 0; i < count && p < ranks; ++p) {
                    sum = input(p, call, i) + (p == 0 ? 0 : sum);
                }
                ASSERT_NEAR(out[i], sum, 1e-5 * std::abs(sum))
                    << "call " << call << " of " << count << " elements, " << ranks
                    << " ranks: element " << i << " on rank " << rank.rank();
            }
            sums[static_cast<std::size_t>(rank.rank())] = out;
            rank.bootstrap().barrier("compare");
            ASSERT_TRUE(sums[0] == out) << "other bits on rank " << rank.rank();
            rank.bootstrap().barrier("compared");
            ++call;
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Of, Fast, ::testing::Values(2, 3, 5));

}  // namespace
}  // namespace symm
