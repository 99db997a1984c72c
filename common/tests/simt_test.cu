// Warps, spans of warps and dependent launches, on whichever driver there is.

#include <gtest/gtest.h>

#include "common/cuda/device.hpp"
#include "common/cuda/graph.hpp"
#include "common/cuda/launch.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/cuda/stream.hpp"
#include "common/simt/warp.hpp"

namespace symm {
namespace {

constexpr unsigned kRounds = 50;

// Every lane checks the values from the others, which differ in each round, warp and lane.
struct Exchange {
    unsigned* errors;  // per thread

    __host__ __device__ static std::uint64_t value(unsigned round, unsigned warp, unsigned lane) {
        return (std::uint64_t{round} << 40) | (std::uint64_t{warp} << 20) | (lane + 1);
    }
    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const simt::Warp warp(block);
        const unsigned me = warp.thread_rank();
        const unsigned number = warp.meta_group_rank();
        unsigned wrong = 0;
        for (unsigned round = 0; round < kRounds; ++round) {
            const unsigned source = (me + round) % warp.size();
            wrong += warp.shfl(value(round, number, me), source) != value(round, number, source);
            const auto small = static_cast<std::uint32_t>(round * 100 + me);
            wrong += warp.shfl(small, source) != round * 100 + source;
            const float real = 0.5F * static_cast<float>(me);
            wrong += warp.shfl(real, 0) != 0.0F;
            const unsigned chosen = round % warp.size();
            wrong += warp.ballot(me == chosen) != 1U << chosen;
            wrong += warp.all(me != chosen);
            wrong += !warp.all(true);
        }
        errors[block.grid_rank()] = wrong;
    }
};

// Two spans of one block, of different size and with different numbers of rounds: each passes
// values on in shared memory, by its own barrier.
struct TwoSpans {
    unsigned* errors;  // per thread

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const bool second = block.thread_rank() >= 2 * simt::kWarpSize;
        const simt::WarpSpan span =
            second ? simt::WarpSpan(block, 2, 1, 2) : simt::WarpSpan(block, 0, 2, 1);
        unsigned* words = block.shared<unsigned>() + (second ? 2 * simt::kWarpSize : 0);
        const unsigned next = (span.thread_rank() + 1) % span.size();
        unsigned wrong = 0;
        for (unsigned round = 0; round < (second ? kRounds : 2 * kRounds); ++round) {
            words[span.thread_rank()] = round * 1000 + span.thread_rank();
            span.sync();
            wrong += words[next] != round * 1000 + next;
            span.sync();
        }
        errors[block.grid_rank()] = wrong;
    }
};

// One thread votes in every second round: each answer is that of its own round, on all threads.
struct Votes {
    unsigned* errors;  // per thread

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        unsigned wrong = 0;
        for (unsigned round = 0; round < 4 * kRounds; ++round) {
            const bool mine = block.thread_rank() == round % block.size();
            wrong += block.sync_or(mine && round % 2 == 1) != (round % 2 == 1);
        }
        errors[block.grid_rank()] = wrong;
    }
};

// A lane of each warp writes, the others read after the warp's barrier.
struct WarpBarrier {
    unsigned* errors;  // per thread

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const simt::Warp warp(block);
        unsigned* word = block.shared<unsigned>() + warp.meta_group_rank();
        unsigned wrong = 0;
        for (unsigned round = 0; round < kRounds; ++round) {
            if (warp.thread_rank() == round % warp.size()) {
                *word = round;
            }
            warp.sync();
            wrong += *word != round;
            warp.sync();
        }
        errors[block.grid_rank()] = wrong;
    }
};

class Groups : public testing::Test {
protected:
    static constexpr unsigned kMost = 1024;
    template <class Kernel>
    void run(unsigned blocks, unsigned threads) {
        for (unsigned i = 0; i < kMost; ++i) {
            errors_.as<unsigned>()[i] = 77;  // a thread that did not run
        }
        launch(stream_.get(), blocks, threads, Kernel{errors_.as<unsigned>()}, 1024);
        stream_.synchronize("the kernel");
        for (unsigned i = 0; i < blocks * threads; ++i) {
            ASSERT_EQ(errors_.as<unsigned>()[i], 0U) << "thread " << i << " of " << threads;
        }
    }

    Device device_{0};
    Stream stream_;
    PinnedMemory errors_{kMost * sizeof(unsigned)};
};

TEST_F(Groups, WarpsExchangeValuesAndVotes) {
    for (const unsigned threads : {1U, 7U, 32U, 33U, 64U, 80U, 96U}) {
        run<Exchange>(2, threads);
    }
}

TEST_F(Groups, WarpsHaveABarrier) {
    for (const unsigned threads : {2U, 32U, 48U, 96U}) {
        run<WarpBarrier>(2, threads);
    }
}

TEST_F(Groups, BlocksVote) {
    for (const unsigned threads : {1U, 2U, 33U, 96U}) {
        run<Votes>(2, threads);
    }
}

TEST_F(Groups, SpansOfOneBlockHaveBarriersOfTheirOwn) {
    run<TwoSpans>(2, 96);
}

// Adds one to a word that the kernel before has written. Its dependent may start at once.
struct AddOne {
    unsigned* word;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        block.wait_for_predecessor();
        block.launch_dependents();
        if (block.grid_rank() == 0) {
            *word += 1;
        }
    }
};

TEST(DependentLaunch, SeesWhatTheKernelBeforeHasWritten) {
    constexpr unsigned kCalls = 300;
    const Device device(0);
    const Stream stream;
    const PinnedMemory word(sizeof(unsigned));
    const auto queue = [&] {
        for (unsigned call = 0; call < kCalls; ++call) {
            launch(stream.get(), 2, 32, AddOne{word.as<unsigned>()}, 0, LaunchOrder::kDependent);
        }
    };
    *word.as<unsigned>() = 0;
    queue();
    stream.synchronize("the kernels");
    EXPECT_EQ(*word.as<unsigned>(), kCalls);
    const Graph graph = Graph::capture(stream.get(), queue);
    for (int i = 0; i < 3; ++i) {
        graph.launch(stream.get());
    }
    stream.synchronize("the graphs");
    EXPECT_EQ(*word.as<unsigned>(), 4 * kCalls);
}

}  // namespace
}  // namespace symm
