// The protocols of one shot (packets, sentinel) and two shots between two ranks, with small
// memories: call after call, over the wrap of the epochs, beside packets whose flags are stale.
// Sound as they are; compiled as a mutant, each test has to find what was taken out.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <functional>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/tests/protocol_kernels.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 2 * ProtocolMemory::kPackets;  // elements of one shot

using Launch = decltype(&launch_protocol_one_shot);

/// Calls `launch` on two ranks, `calls` times without waiting in between; call i has `count(i)`
/// elements.
void call_on_two_ranks(Launch launch, unsigned calls,
                       const std::function<std::size_t(unsigned)>& count, std::uint32_t epoch = 0,
                       std::uint32_t stale = 0) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout;
        const DeviceMemory wrong(sizeof(unsigned));
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, epoch, stale);
        stream.synchronize();
        rank.bootstrap().barrier("reset");
        for (unsigned call = 0; call < calls; ++call) {
            launch_prepare(stream.get(), local, rank.rank(), call);
            launch(stream.get(), range.at<ProtocolMemory>(0), range.stride(), rank.rank(),
                   count(call), timeout.timeout());
            launch_compare(stream.get(), local, count(call), call, wrong.as<unsigned>());
        }
        timeout.synchronize(stream, "the AllReduces");
        unsigned errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        EXPECT_EQ(errors, 0U) << "wrong values on rank " << rank.rank();
        rank.bootstrap().barrier("done");
    });
}

TEST(TwoShot, IsRightCallAfterCall) {
    call_on_two_ranks(&launch_protocol_two_shot, 5,
                      [](unsigned call) { return ProtocolMemory::kElements - 1 - call; });
}

TEST(OneShot, IsRightCallAfterCall) {
    call_on_two_ranks(&launch_protocol_one_shot, 300,
                      [](unsigned call) { return 1 + call % kMost; });
}

// In rounds: of the scratch memory only 64 bytes are used.
TEST(TwoShotCopy, IsRightCallAfterCall) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout(5s);
        const DeviceMemory wrong(sizeof(unsigned));
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, 0, 0);
        stream.synchronize();
        TwoShotCopy two_shot(rank, &range.at<ProtocolMemory>(0)->copy, range.stride(), 64);
        const auto in_all = [&](std::size_t offset) {
            return SymmetricPointer{range.peer(0) + offset, range.stride()};
        };
        for (unsigned call = 0; call < 10; ++call) {
            const std::size_t count = ProtocolMemory::kElements - 23 * call;
            launch_prepare(stream.get(), local, rank.rank(), call);
            two_shot.queue(stream.get(), {2, 8}, DataType::kFloat,
                           {in_all(offsetof(ProtocolMemory, in)),
                            in_all(offsetof(ProtocolMemory, out)),
                            count,
                            Reduction(ReduceOp::kSum, 2),
                            {},
                            timeout.timeout()});
            launch_compare(stream.get(), local, count, call, wrong.as<unsigned>());
        }
        timeout.synchronize(stream, "the AllReduces");
        unsigned errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        EXPECT_EQ(errors, 0U) << "wrong values on rank " << rank.rank();
        rank.bootstrap().barrier("done");
    });
}

// All packets of fresh memory hold the flag of an epoch behind the wrap. Small calls use one packet
// of each bank; when that epoch comes, a large call uses all.
TEST(OneShot, TakesNoFlagOfAFormerEpochForANewOne) {
    constexpr std::uint32_t kStart = 0xffffffd0U;
    constexpr std::uint32_t kStale = 3;
    constexpr unsigned kCalls = 0xffffffffU - kStart + 4;
    call_on_two_ranks(
        &launch_protocol_one_shot, kCalls,
        [](unsigned call) { return call < kCalls - 3 ? 2 : kMost; }, kStart, kStale);
}

// Over the wrap of the epoch. A call has up to two packs per thread.
TEST(Sentinel, IsRightCallAfterCall) {
    call_on_two_ranks(
        &launch_protocol_sentinel, 300,
        [](unsigned call) { return 1 + call * 7 % (4 * ProtocolMemory::kPackets); }, 0xffffff80U);
}

// An input whose bits are those of the sentinel is sent, too, and its sums are NaNs.
TEST(Sentinel, EndsWhereTheInputHasItsBits) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout(2s);
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, 0, 0);
        const CUdeviceptr in = reinterpret_cast<CUdeviceptr>(local->in);
        cu_check(cuMemsetD8Async(in, 0xff, sizeof(local->in), stream.get()), "cuMemsetD8Async()");
        stream.synchronize();
        rank.bootstrap().barrier("reset");
        launch_protocol_sentinel(stream.get(), range.at<ProtocolMemory>(0), range.stride(),
                                 rank.rank(), 10, timeout.timeout());
        timeout.synchronize(stream, "the AllReduce");
        std::array<float, 10> out{};
        copy_to_host(out.data(), reinterpret_cast<CUdeviceptr>(local->out), sizeof(out));
        for (const float sum : out) {
            EXPECT_TRUE(std::isnan(sum));
        }
        rank.bootstrap().barrier("done");
    });
}

// Rank 1 does not call. The third call would use the bank of the first again.
TEST(Sentinel, SendsNothingBehindAKernelThatGaveUp) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout(300ms);
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, 0, 0);
        stream.synchronize();
        rank.bootstrap().barrier("reset");
        if (rank.rank() == 0) {
            for (unsigned call = 0; call < 3; ++call) {
                launch_prepare(stream.get(), local, 0, call);
                launch_protocol_sentinel(stream.get(), local, range.stride(), 0, 8,
                                         timeout.timeout());
            }
            EXPECT_THROW(timeout.synchronize(stream, "three calls"), std::runtime_error);
        }
        rank.bootstrap().barrier("given up");
        if (rank.rank() == 1) {
            std::array<float, 4> arrived{};
            copy_to_host(arrived.data(),
                         range.peer(1) + offsetof(ProtocolMemory, sentinel_banks[1]),
                         sizeof(arrived));
            EXPECT_EQ(arrived, (std::array<float, 4>{0, 2, 4, 6}));  // of the first call
        }
        rank.bootstrap().barrier("looked");
    });
}

}  // namespace
}  // namespace symm
