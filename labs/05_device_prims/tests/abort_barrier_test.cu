// One thread's wait gives up: all threads of its block have to leave in the same round.

#include <gtest/gtest.h>

#include <chrono>

#include "common/cuda/device.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/signal.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kRounds = 9;
constexpr std::uint32_t kSent = 4;  // the flag never reaches 5
constexpr unsigned kBlocks = 2;
constexpr unsigned kThreads = 7;

// In each round `waiting` threads wait for the flag, each time others. The rest wait for them at
// the barrier.
struct RoundsKernel {
    const std::uint32_t* flag;
    std::uint32_t* left;  // per thread: the round in which it left
    bool* stays;          // per thread: whether the barrier's answer was the same once more
    unsigned waiting;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        simt::Waiter waiter(timeout);
        AbortBarrier barrier(block);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            bool arrived = true;
            if ((block.thread_rank() + round) % block.size() < waiting) {
                arrived = wait_signal(waiter, flag, {simt::Wait::kSignal, 0, 1, round});
            }
            if (!barrier.sync(arrived)) {
                left[block.grid_rank()] = round;
                stays[block.grid_rank()] = !barrier.sync(true);
                return;
            }
        }
    }
};

TEST(AbortBarrier, LetsAllThreadsLeaveInTheSameRound) {
    const Device device(0);
    const PinnedMemory flag(sizeof(std::uint32_t));
    const PinnedMemory left(kBlocks * kThreads * sizeof(std::uint32_t));
    const PinnedMemory stays(kBlocks * kThreads);
    const Stream stream;
    *flag.as<std::uint32_t>() = kSent;
    for (const unsigned waiting : {1U, 3U, kThreads}) {
        KernelTimeout timeout(300ms);
        std::fill_n(left.as<std::uint32_t>(), kBlocks * kThreads, 0);
        std::fill_n(stays.as<bool>(), kBlocks * kThreads, false);
        launch(stream.get(), kBlocks, kThreads,
               RoundsKernel{flag.as<std::uint32_t>(), left.as<std::uint32_t>(), stays.as<bool>(),
                            waiting, timeout.timeout()});
        EXPECT_THROW(timeout.synchronize(stream, "the kernel"), std::runtime_error);
        for (unsigned i = 0; i < kBlocks * kThreads; ++i) {
            EXPECT_EQ(left.as<std::uint32_t>()[i], kSent + 1)
                << "thread " << i << " went on alone, with " << waiting << " that waited";
            EXPECT_TRUE(stays.as<bool>()[i]) << "thread " << i;
        }
    }
}

}  // namespace
}  // namespace symm
