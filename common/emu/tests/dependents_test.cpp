// Dependent launches on the emulated GPUs: kernels that start before the one before has ended.

#include <atomic>
#include <functional>

#include "common/emu/tests/support.hpp"
#include "common/simt/back_off.hpp"

namespace symm::emu {
namespace {

class Dependents : public EmulatedDriver {
protected:
    void SetUp() override { ASSERT_OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING)); }
    void TearDown() override {
        EXPECT_OK(cuStreamSynchronize(stream_));
        EXPECT_OK(cuStreamDestroy(stream_));
    }

    template <class Body>
    CUresult start(unsigned blocks, unsigned threads, Body body, bool is_dependent = true) {
        return launch_kernel(stream_,
                             {"dependent", dim3(blocks), dim3(threads), 0, body, is_dependent});
    }
    /// Keeps the stream from its next kernel until all have been queued: later ones are not looked
    /// at before they are there.
    void hold() {
        ASSERT_OK(start(
            1, 1, [this](const simt::ThreadBlock&) { wait_for(all_queued_); }, false));
    }
    void let_go() { all_queued_ = true; }

    static void wait_for(const std::atomic<bool>& flag) {
        for (int round = 0; !flag; ++round) {
            simt::back_off(round);
        }
    }
    /// Waits for the flag, but not long. Returns whether it came.
    static bool comes(const std::atomic<bool>& flag) {
        for (int round = 0; round < 100 && !flag; ++round) {
            simt::back_off(round);
        }
        return flag;
    }

    enum First { kLetsNone, kLetsThem };
    enum Second { kNotDependent, kDependent };
    /// Whether the second of two kernels runs before the first has ended.
    bool overlap(
        First first, Second second, const std::function<void()>& queue_between = [] {}) {
        std::atomic<bool> second_runs{false};
        bool too_early = false;
        hold();
        EXPECT_OK(start(1, 1, [&, first](const simt::ThreadBlock& block) {
            if (first == kLetsThem) {
                block.launch_dependents();
            }
            too_early = comes(second_runs);
        }));
        queue_between();
        EXPECT_OK(start(
            1, 1,
            [&](const simt::ThreadBlock& block) {
                second_runs = true;
                block.wait_for_predecessor();
            },
            second == kDependent));
        let_go();
        EXPECT_OK(cuStreamSynchronize(stream_));
        return too_early;
    }

    CUstream stream_ = nullptr;
    std::atomic<bool> all_queued_{false};
};

// Each waits for the other, so neither would end if they did not overlap.
TEST_F(Dependents, OverlapAKernelThatLetsThem) {
    std::atomic<bool> second_runs{false}, first_may_end{false};
    unsigned result = 0, seen = 0;
    hold();
    ASSERT_OK(start(3, 5, [&](const simt::ThreadBlock& block) {
        block.launch_dependents();
        block.launch_dependents();  // a second time changes nothing
        wait_for(second_runs);
        wait_for(first_may_end);
        if (block.grid_rank() == 0) {
            result = 42;
        }
    }));
    ASSERT_OK(start(2, 3, [&](const simt::ThreadBlock& block) {
        second_runs = true;
        first_may_end = true;
        block.wait_for_predecessor();
        if (block.grid_rank() == 0) {
            seen = result;
        }
    }));
    let_go();
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(seen, 42u);
}

// A block of which no thread has called launch_dependents() holds back the next kernel until it has
// ended. In another one, one thread is enough.
TEST_F(Dependents, StartWhenEachBlockHasLetThemOrEnded) {
    std::atomic<bool> second_runs{false};
    std::atomic<bool> too_early{false};
    hold();
    ASSERT_OK(start(2, 4, [&](const simt::ThreadBlock& block) {
        if (block.group_index() == 1) {
            if (comes(second_runs)) {
                too_early = true;
            }
            return;
        }
        if (block.thread_rank() == 2) {
            block.launch_dependents();
        }
        wait_for(second_runs);
    }));
    ASSERT_OK(start(1, 1, [&](const simt::ThreadBlock&) { second_runs = true; }));
    let_go();
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_FALSE(too_early);
}

TEST_F(Dependents, WaitForAKernelThatLetsNone) {
    EXPECT_FALSE(overlap(kLetsNone, kDependent));
}

TEST_F(Dependents, AreNeverWhatWasNotLaunchedSo) {
    EXPECT_FALSE(overlap(kLetsThem, kNotDependent));
}

// A device has no room for both. The second starts when the first has ended.
TEST_F(Dependents, StartAfterwardsWhereThereIsNoRoom) {
    const auto all = static_cast<unsigned>(threads_of_device()) / 256;
    unsigned sum = 0;
    hold();
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(start(all, 256, [&](const simt::ThreadBlock& block) {
            block.launch_dependents();
            block.wait_for_predecessor();
            if (block.grid_rank() == 0) {
                ++sum;
            }
        }));
    }
    let_go();
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(sum, 3u);
}

// What is behind a copy or an event waits for that, and so for all kernels before it.
TEST_F(Dependents, WaitForOtherWork) {
    Shared memory(0, {0});
    EXPECT_FALSE(overlap(kLetsThem, kDependent,
                         [&] { EXPECT_OK(cuMemsetD8Async(memory.base(), 1, 4, stream_)); }));
}

TEST_F(Dependents, OverlapInGraphs) {
    std::atomic<bool> second_runs{false};
    unsigned result = 0, seen = 0, unordered = 0;
    ASSERT_OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ASSERT_OK(start(2, 2, [&](const simt::ThreadBlock& block) {
        block.wait_for_predecessor();
        block.launch_dependents();
        wait_for(second_runs);
        if (block.grid_rank() == 0) {
            ++result;
        }
    }));
    ASSERT_OK(start(2, 2, [&](const simt::ThreadBlock& block) {
        second_runs = true;
        block.wait_for_predecessor();
        if (block.grid_rank() == 0) {
            second_runs = false;
            unordered += seen + 1 != result ? 1 : 0;
            seen = result;
        }
    }));
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_OK(cuStreamEndCapture(stream_, &graph));
    ASSERT_OK(cuGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cuGraphDestroy(graph));
    for (int i = 0; i < 20; ++i) {
        ASSERT_OK(cuGraphLaunch(executable, stream_));
    }
    ASSERT_OK(cuStreamSynchronize(stream_));
    ASSERT_OK(cuGraphExecDestroy(executable));
    EXPECT_EQ(seen, 20u);
    EXPECT_EQ(unordered, 0u);
}

// Two are alive at most, also if they never wait. Each writes without a look at the others.
TEST_F(Dependents, AreTwoAtMost) {
    std::atomic<int> alive{0}, most{0};
    hold();
    for (int i = 0; i < 6; ++i) {
        ASSERT_OK(start(1, 1, [&](const simt::ThreadBlock& block) {
            const int now = ++alive;
            for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
            }
            block.launch_dependents();
            for (int round = 0; round < 30; ++round) {
                simt::back_off(round);
            }
            --alive;
        }));
    }
    let_go();
    ASSERT_OK(cuStreamSynchronize(stream_));
    EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace symm::emu
