// Kernels of many waits end soon after their abort flag is raised, and barriers survive the wrap of
// their epochs.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

/// One rank's memory and what its kernels need.
struct Side {
    explicit Side(Rank& r, std::uint32_t word = 0) : rank(r), range(r, sizeof(LatencyMemory)) {
        cu_check(cuMemsetD32Async(range.local(), word, sizeof(LatencyMemory) / 4, stream.get()),
                 "cuMemsetD32Async()");
        stream.synchronize();
        rank.bootstrap().barrier("initial words");
    }
    LatencyMemory* memory(int which) { return range.at<LatencyMemory>(which); }
    std::uint64_t errors() {
        std::uint64_t count = 0;
        copy_to_host(&count, range.local() + offsetof(LatencyMemory, errors), sizeof(count));
        return count;
    }

    Rank& rank;
    SymmetricRange range;
    KernelTimeout timeout;
    Stream stream;
};

// Each of its waits is short, and none of them times out.
TEST(PingPong, OfTenMillionRoundsEndsWithinTenMillisecondsOfItsAbort) {
    const auto limit = is_emulated() ? 2000ms : 10ms;
    for (const Carrier carrier : {Carrier::kSignal, Carrier::kRelaxed, Carrier::kPacket}) {
        run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
            Side side(rank);
            const int me = rank.rank();
            launch_ping_pong(side.stream.get(),
                             {side.memory(me), side.memory(1 - me), side.timeout.timeout(), carrier,
                              me, 1 - me, 1, 10'000'000});
            std::this_thread::sleep_for(50ms);
            rank.bootstrap().barrier("both play");
            ASSERT_FALSE(side.stream.finished());
            const auto start = std::chrono::steady_clock::now();
            side.timeout.abort();
            while (!side.stream.finished() && std::chrono::steady_clock::now() - start < 20s) {
                std::this_thread::yield();
            }
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - start;
            EXPECT_LT(took, limit);
            RecordProperty("milliseconds_" + std::to_string(me), std::to_string(took.count()));
            EXPECT_EQ(side.errors(), 0U);
            rank.bootstrap().barrier("ended");
        });
    }
}

// Kernels queued after an aborted one end at their first wait, although no signal will ever come.
TEST(PingPong, QueuedBehindAnAbortEndsAtItsFirstWait) {
    const auto limit = is_emulated() ? 2000ms : 20ms;
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank);
        if (rank.rank() == 0) {
            for (std::uint32_t kernel = 0; kernel < 20; ++kernel) {
                launch_ping_pong(side.stream.get(),
                                 {side.memory(0), side.memory(1), side.timeout.timeout(),
                                  Carrier::kSignal, 0, 1, 1 + 5 * kernel, 5});
            }
            const auto start = std::chrono::steady_clock::now();
            side.timeout.abort();
            EXPECT_THROW(side.timeout.synchronize(side.stream, "the queue"), std::runtime_error);
            EXPECT_LT(std::chrono::steady_clock::now() - start, limit);
        }
        rank.bootstrap().barrier("ended");
    });
}

// Rank 1 comes to one barrier, rank 0 to two: its kernel gives up at the second. The next kernel
// would start with the first one's epoch again, which rank 1 has signalled already.
TEST(Barrier, SignalsNobodyBehindAKernelThatGaveUp) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank);
        const KernelTimeout timeout(1s);
        const auto queue = [&](std::uint32_t round, std::uint32_t rounds) {
            launch_barrier_rounds(side.stream.get(),
                                  {side.range.pointer<LatencyMemory>(), rank.rank(), 2,
                                   timeout.timeout(), round, rounds},
                                  1, 8);
        };
        queue(1, rank.rank() == 0 ? 2 : 1);
        if (rank.rank() == 0) {
            queue(2, 1);  // rank 1 may still read what round 1 has written
        }
        side.stream.synchronize();
        rank.bootstrap().barrier("all kernels have ended");
        if (rank.rank() == 1) {
            std::uint32_t arrived = 0;
            copy_to_host(&arrived, side.range.local() + offsetof(LatencyMemory, barrier.inbox),
                         sizeof(arrived));
            EXPECT_EQ(arrived, 2U);
        }
        rank.bootstrap().barrier("looked");
    });
}

TEST(Barrier, SurvivesTheWrapOfItsEpochs) {
    run_ranks({3, RankMode::kThread, {}}, [&](Rank& rank) {
        constexpr std::uint32_t kBeforeTheWrap = 0xfffffffbU;
        Side side(rank, kBeforeTheWrap);  // epochs and all that arrived with them
        const std::uint64_t errors = side.errors();
        for (std::uint32_t call = 0; call < 4; ++call) {
            launch_barrier_rounds(side.stream.get(),
                                  {side.range.pointer<LatencyMemory>(), rank.rank(), rank.size(),
                                   side.timeout.timeout(), 1 + 3 * call, 3},
                                  2, 8);
        }
        side.timeout.synchronize(side.stream, "twelve barriers");
        EXPECT_EQ(side.errors(), errors);
        std::uint32_t epoch = 0;
        copy_to_host(&epoch, side.range.local() + offsetof(LatencyMemory, barrier.epoch),
                     sizeof(epoch));
        EXPECT_EQ(epoch, kBeforeTheWrap + 12);
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
