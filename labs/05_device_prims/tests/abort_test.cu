// Kernels of many waits end soon after their abort flag is raised.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/cuda/copy.hpp"
#include "common/cuda/driver.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

/// One rank's memory and what its kernels need.
struct Side {
    explicit Side(Rank& rank) : range(rank, sizeof(LatencyMemory)) {
        zero(range.local(), sizeof(LatencyMemory));
        rank.bootstrap().barrier("zeroed");
    }
    LatencyMemory* memory(int which) { return range.at<LatencyMemory>(which); }
    std::uint64_t errors() {
        std::uint64_t count = 0;
        copy_to_host(&count, range.local() + offsetof(LatencyMemory, errors), sizeof(count));
        return count;
    }

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
            launch(side.stream.get(), 1, 1,
                   PingPong{side.memory(me), side.memory(1 - me), side.timeout.timeout(), carrier,
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

}  // namespace
}  // namespace symm
