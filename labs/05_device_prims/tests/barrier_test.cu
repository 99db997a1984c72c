// The barrier of three ranks: it orders what blocks write, and a block gives up as a whole.

#include "labs/05_device_prims/barrier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/cuda/device.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/tests/text_thrown_by.hpp"
#include "common/tests/waste.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;

class Barriers : public ::testing::Test {
protected:
    struct Member {
        Member(int rank, std::chrono::nanoseconds limit)
            : device(rank % device_count()), timeout(limit) {}
        Device device;
        Stream stream;
        KernelTimeout timeout;
    };

    void make_ranks(std::chrono::nanoseconds limit) {
        for (int rank = 0; rank < kRanks; ++rank) {
            ranks_.push_back(std::make_unique<Member>(rank, limit));
        }
        std::memset(memory_.as<void>(), 0, kRanks * sizeof(LatencyMemory));
    }
    template <class Kernel>
    void start(int rank, const Kernel& kernel, unsigned blocks, unsigned threads) {
        ranks_[rank]->device.make_current();
        launch(ranks_[rank]->stream.get(), blocks, threads, kernel);
    }
    /// Returns the kernels' report if a wait gave up.
    std::string wait(int rank) {
        return testing::text_thrown_by(
            [&] { ranks_[rank]->timeout.synchronize(ranks_[rank]->stream, "the kernel"); });
    }

    LatencyMemory* first() const { return memory_.as<LatencyMemory>(); }
    SymmetricPointer<LatencyMemory> memory() const { return {first(), sizeof(LatencyMemory)}; }
    BarrierView view(int rank) const {
        return {memory().member(&LatencyMemory::barrier), rank, kRanks};
    }
    simt::Timeout timeout(int rank) const { return ranks_[rank]->timeout.timeout(); }

    Device device_{0};
    PinnedMemory memory_{kRanks * sizeof(LatencyMemory)};
    std::vector<std::unique_ptr<Member>> ranks_;
};

// Each thread notes the barrier's answer.
struct OneBarrier {
    BarrierView view;
    simt::Timeout timeout;
    bool* went_on;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier barrier(block, view, timeout);
        went_on[block.thread_rank()] = barrier.arrive_and_wait();
        barrier.store_epoch();
    }
};

// Rank 2 never comes. Only thread 2 waits for it.
TEST_F(Barriers, AreLeftByNobodyWhereARankIsMissing) {
    make_ranks(300ms);
    const PinnedMemory went_on(2 * 4);
    std::memset(went_on.as<void>(), 1, 2 * 4);
    std::uint32_t signals[2] = {};
    for (int kernel = 0; kernel < 2; ++kernel) {  // the second one knows that the first gave up
        for (int rank = 0; rank < 2; ++rank) {
            start(rank, OneBarrier{view(rank), timeout(rank), went_on.as<bool>() + rank * 4}, 1, 4);
        }
        for (int rank = 0; rank < 2; ++rank) {
            const std::string waited = "rank " + std::to_string(rank) + " waited";
            const std::string report = wait(rank);
            for (const std::string& part :
                 {waited, std::string("a barrier arrival from rank 2: expected 1, saw 0")}) {
                EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, report)
                    << "its report: " << report;
            }
            const std::uint32_t sent = first()[2].barrier.inbox[0][rank];
            EXPECT_TRUE(kernel == 0 || sent == signals[rank])
                << "rank " << rank << " gave up, and its next kernel sent a signal";
            signals[rank] = sent;
            for (int i = 0; i < 4; ++i) {
                EXPECT_FALSE(went_on.as<bool>()[rank * 4 + i])
                    << "rank " << rank << ", thread " << i
                    << (i == 2 ? " did not wait for rank 2" : " went on without rank 2");
            }
        }
    }
}

// No other rank comes. The one thread waits for rank 1 first, but rank 2 needs its signal, too.
TEST_F(Barriers, SignalAllBeforeTheyWaitForAnyone) {
    make_ranks(300ms);
    const PinnedMemory went_on(1);
    start(0, OneBarrier{view(0), timeout(0), went_on.as<bool>()}, 1, 1);
    ranks_[0]->stream.synchronize("the kernel");
    for (const int peer : {1, 2}) {
        EXPECT_EQ(first()[peer].barrier.inbox[0][0], 1U)
            << "rank 0 waited before it had signalled rank " << peer;
    }
}

// With as many threads as ranks, or more, or fewer. In the first kernel the epochs wrap.
TEST_F(Barriers, OrderWhatAllRanksWrite) {
    make_ranks(3s);
    for (int rank = 0; rank < kRanks; ++rank) {
        BarrierMemory& memory = first()[rank].barrier;
        for (const int b : {0, 1}) {
            memory.epoch[b] = 0xfffffffbU;
            std::fill_n(memory.inbox[b], kRanks, memory.epoch[b]);
        }
    }
    std::uint32_t round = 1;
    for (const unsigned threads : {4U, 3U, 2U}) {
        for (int rank = 0; rank < kRanks; ++rank) {
            start(rank, BarrierRounds{memory(), rank, kRanks, timeout(rank), round, 10}, 2,
                  threads);
        }
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_EQ(wait(rank), "");
            EXPECT_EQ(first()[rank].errors, 0U) << threads << " threads";
        }
        round += 10;
    }
    for (int rank = 0; rank < kRanks; ++rank) {
        if (first()[rank].barrier.inbox[0][rank] != 0xfffffffbU) {
            testing::waste("rank " + std::to_string(rank) + " signals itself");
        }
    }
}

}  // namespace
}  // namespace symm
