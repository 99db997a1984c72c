// Rings whose ranks do not call, fail, or are killed or stopped: the others end, report which rank
// they waited for at which step, and leave nothing behind.

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <latch>
#include <numeric>
#include <optional>
#include <thread>

#include "common/cuda/check.hpp"
#include "common/emu/faults.hpp"
#include "common/emu/inventory.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/running.hpp"
#include "common/tests/sanitized.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/04_shm_transport/host_memory/tests/segment_counts.hpp"
#include "labs/05_device_prims/ring/tests/ring_test.hpp"

namespace symm {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMost = 4000;  // floats: more than the slots of a channel hold

/// One rank's ring, destroyed before the buffers that it uses.
struct Side {
    explicit Side(Rank& rank, const RingOptions& options)
        : buffer(kMost * sizeof(float)), stream(stream_of(rank)), ring(rank, options) {}
    void queue(Collective collective, Protocol protocol, std::size_t count) {
        RingRequest call{collective, protocol};
        call.input = call.output = buffer.address();
        call.count = count;
        ring.queue(call, stream.get());
    }
    void synchronize() { ring.synchronize(stream, "the call"); }

    DeviceMemory buffer;
    const Stream& stream;
    RingCommunicator ring;
};

using Way = std::pair<Protocol, RingMemory>;
class FailingRing : public ::testing::TestWithParam<Way> {
protected:
    static Protocol protocol() { return GetParam().first; }
    static RingOptions within(std::chrono::nanoseconds limit) {
        return {GetParam().second, 1, limit};
    }
};
std::string name_of_way(const ::testing::TestParamInfo<Way>& info) {
    return std::string(name_of(info.param.first)) + "_over_" +
           std::string(name_of(info.param.second));
}
INSTANTIATE_TEST_SUITE_P(Over, FailingRing,
                         ::testing::Values(Way{Protocol::kSimple, RingMemory::kPeer},
                                           Way{Protocol::kLL, RingMemory::kPeer},
                                           Way{Protocol::kLL128, RingMemory::kPeer},
                                           Way{Protocol::kSimple, RingMemory::kHost},
                                           Way{Protocol::kLL, RingMemory::kHost}),
                         name_of_way);

// The second kernel's data would pass for the first's.
TEST_P(FailingRing, SendsNothingBehindAKernelThatGaveUp) {
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        Side side(rank, within(300ms));
        if (rank.rank() == 0) {
            cu_check(cuMemsetD8Async(side.buffer.address(), 0x11, kMost * sizeof(float),
                                     side.stream.get()),
                     "cuMemsetD8Async()");
            side.queue(Collective::kAllReduce, protocol(), 100);
            cu_check(cuMemsetD8Async(side.buffer.address(), 0x55, kMost * sizeof(float),
                                     side.stream.get()),
                     "cuMemsetD8Async()");
            side.queue(Collective::kAllReduce, protocol(), 100);
            EXPECT_THAT(text_thrown_by([&] { side.synchronize(); }), HasSubstr("block 0, step 0)"));
            const Connection& sent = side.ring.neighbours(protocol()).to_next;
            std::vector<std::byte> slots(sent.slots_bytes());
            copy_to_host(slots.data(), reinterpret_cast<CUdeviceptr>(sent.buffer), slots.size());
            EXPECT_GE(std::count(slots.begin(), slots.end(), std::byte{0x11}), 128);
            EXPECT_EQ(std::count(slots.begin(), slots.end(), std::byte{0x55}), 0);
        }
        rank.bootstrap().barrier("looked");
    });
}

TEST_P(FailingRing, WaitsForItsCallsWhenItIsDestroyed) {
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        const Stream& stream = stream_of(rank);
        const DeviceMemory buffer(kMost * sizeof(float));
        std::vector<float> values(kMost, 1);
        copy_to_device(buffer.address(), values.data(), buffer.size());
        CUcontext current = rank.gpu().context();
        std::string error;
        std::thread([&] {  // without a current context
            error = text_thrown_by([&] {
                RingCommunicator ring(rank, within(60s));
                RingRequest call{Collective::kAllReduce, protocol()};
                call.input = call.output = buffer.address();
                call.count = kMost;
                for (int i = 0; i < 5; ++i) {
                    ring.queue(call, stream.get());
                }
            });
            cuCtxGetCurrent(&current);
        })
            .join();
        EXPECT_EQ(error, "");
        EXPECT_EQ(current, nullptr) << "a call left another context current";
        EXPECT_TRUE(stream.finished());
        copy_to_host(values.data(), buffer.address(), buffer.size());
        EXPECT_EQ(values, std::vector<float>(kMost, 32));
        rank.bootstrap().barrier("destroyed");
    });
}

// Rank 1 makes no call.
TEST_P(FailingRing, EndsItsCallsBeforeItFreesMemoryWhereItCannotWait) {
    SYMM_NEEDS(is_emulated());
    const auto start = std::chrono::steady_clock::now();
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        std::optional<Side> side(std::in_place, rank, within(60s));
        if (rank.rank() == 0) {
            side->queue(Collective::kAllReduce, protocol(), kMost);
            emu::fail_call("cuCtxSynchronize", 1, CUDA_ERROR_INVALID_CONTEXT);
            side.reset();
            EXPECT_EQ(text_thrown_by([&] { stream_of(rank).synchronize(); }), "");
        }
        rank.bootstrap().barrier("destroyed");
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST_P(FailingRing, EndsItsCallsWhenItIsDestroyedAndAnotherRankHasFailed) {
    const auto start = std::chrono::steady_clock::now();
    std::latch queued(1);
    const std::string error = error_of(ranks_of_this_test(2, RankMode::kThread), [&](Rank& rank) {
        std::optional<Side> side(std::in_place, rank, within(60s));
        if (rank.rank() == 1) {
            queued.wait();
            throw std::runtime_error("no more calls");
        }
        side->queue(Collective::kAllReduce, protocol(), kMost);
        queued.count_down();
        side.reset();
        EXPECT_EQ(text_thrown_by([&] { stream_of(rank).synchronize(); }), "");
    });
    EXPECT_EQ(error, "rank 1 failed: no more calls");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// Rank 2 waits for rank 1, and rank 0 for data from rank 2. Flags are those of the step
// that used the slot before; Simple's tail counts all steps.
TEST_P(FailingRing, SaysAtWhichStepItWaitedForARankThatDoesNotCall) {
    const std::chrono::seconds limit{kSanitized ? 4 : 1};
    std::array<std::string, 3> said;
    run_as(RankMode::kThread, 3, [&](Rank& rank) {
        Side side(rank, within(limit));
        for (int call = 0; call < 2; ++call) {  // of 4 steps each
            side.queue(Collective::kAllReduce, protocol(), 100);
        }
        side.synchronize();
        rank.bootstrap().barrier("two calls");
        if (rank.rank() != 1) {
            side.queue(Collective::kAllReduce, protocol(), 100);
            said.at(static_cast<std::size_t>(rank.rank())) =
                text_thrown_by([&] { side.synchronize(); });
        }
        rank.bootstrap().barrier("told");
    });
    const bool tail = protocol() == Protocol::kSimple;
    const char* what = tail ? "filled FIFO slot" : protocol() == Protocol::kLL ? "packet" : "line";
    const auto text = [&](int rank, int peer, int step) {
        return fmt::format(
            "rank {} waited {} s in a kernel for a {} from rank {}: expected {}, "
            "saw {} (block 0, step {})",
            rank, limit.count(), what, peer, step + 1, tail ? step : step - 7, step);
    };
    EXPECT_EQ(said[0], text(0, 2, 9));
    EXPECT_EQ(said[1], "");
    EXPECT_EQ(said[2], text(2, 1, 8));
}

TEST_P(FailingRing, SaysThatNoSlotCameBackFromARankThatDoesNotCall) {
    std::string said;
    run_as(RankMode::kThread, 2, [&](Rank& rank) {
        Side side(rank, within(300ms));
        if (rank.rank() == 0) {
            for (unsigned i = 0; i < kSteps + 1; ++i) {  // each takes one slot
                side.queue(Collective::kBroadcast, protocol(), 20);
            }
            said = text_thrown_by([&] { side.synchronize(); });
        }
        rank.bootstrap().barrier("told");
    });
    EXPECT_EQ(said,
              "rank 0 waited 0.3 s in a kernel for a free FIFO slot from rank 1: expected 1, saw 0 "
              "(block 0, step 8)");
}

TEST_P(FailingRing, EndsSoonWhenARankFailsInMidCollective) {
    const auto start = std::chrono::steady_clock::now();
    std::latch queued(2);
    const std::string error = error_of(ranks_of_this_test(3, RankMode::kThread), [&](Rank& rank) {
        Side side(rank, within(60s));
        side.queue(Collective::kAllReduce, protocol(), kMost);
        side.synchronize();
        rank.bootstrap().barrier("one call");
        if (rank.rank() == 1) {
            while (!queued.try_wait() && std::chrono::steady_clock::now() - start < 30s) {
                std::this_thread::sleep_for(20ms);
            }
            throw std::runtime_error("the GPU has gone fishing");
        }
        side.queue(Collective::kAllReduce, protocol(), kMost);
        queued.count_down();
        side.synchronize();
    });
    EXPECT_EQ(error, "rank 1 failed: the GPU has gone fishing");
    EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
}

/// Runs three rank processes. Rank 1 gets `signal` while the others' kernels wait for it. Returns
/// the error, and by rank what the others' calls threw, with what they left behind.
std::pair<std::string, std::array<std::string, 3>> errors_after(int signal, Protocol protocol,
                                                                const RingOptions& options) {
    // Only the parent makes a directory: a killed rank would not remove its own.
    const auto directory = is_rank_process() ? nullptr : std::make_unique<TemporaryDirectory>();
    const std::filesystem::path path =
        told_to_ranks("SYMM_TEST_DIRECTORY", directory ? directory->path().string() : "");
    const std::string error = error_of(ranks_of_this_test(3, RankMode::kProcess), [&](Rank& rank) {
        { const Side first(rank, options); }
        const emu::Inventory before = is_emulated() ? emu::inventory() : emu::Inventory{};
        const SegmentCounts segments = segment_counts();
        try {
            Side side(rank, options);
            side.queue(Collective::kAllReduce, protocol, 100);
            side.synchronize();
            rank.bootstrap().barrier("one call");
            if (rank.rank() == 1) {
                std::this_thread::sleep_for(100ms);
                ::raise(signal);
            }
            side.queue(Collective::kAllReduce, protocol, 100);
            side.synchronize();
        } catch (const std::exception& failure) {
            const bool clean = !is_emulated() || emu::inventory() == before;
            std::ofstream(path / std::to_string(rank.rank()))
                << failure.what()
                << (clean && segment_counts() == segments ? "; clean" : "; dirty");
            throw;
        }
    });
    return {error, {text_of(path / "0"), text_of(path / "1"), text_of(path / "2")}};
}

TEST(KilledRing, NamesTheRankAndLeavesNothing) {
    const auto start = std::chrono::steady_clock::now();
    const auto [error, said] = errors_after(SIGKILL, Protocol::kLL128, {RingMemory::kPeer, 1, 60s});
    if (is_rank_process()) {
        return;
    }
    EXPECT_THAT(error, AllOf(HasSubstr("rank 1 (pid"), HasSubstr("killed by signal 9")));
    for (const int survivor : {0, 2}) {
        EXPECT_THAT(said.at(static_cast<std::size_t>(survivor)),
                    AllOf(HasSubstr("rank 1 (pid"), HasSubstr("; clean")));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
}

TEST(StoppedRing, NamesTheRankAndLeavesNothing) {
    const VariableInForce timeout("SYMM_TIMEOUT", "4");
    const auto start = std::chrono::steady_clock::now();
    const auto [error, said] = errors_after(SIGSTOP, Protocol::kLL, {RingMemory::kHost, 1, 2s});
    if (is_rank_process()) {
        return;
    }
    EXPECT_THAT(error, HasSubstr("waited 2 s in a kernel for"));
    for (const int survivor : {0, 2}) {
        EXPECT_THAT(said.at(static_cast<std::size_t>(survivor)),
                    AllOf(HasSubstr("waited 2 s in a kernel"), HasSubstr("; clean")));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
}

// Data that a rank has sent stays there for the others, also in host memory without a name.
TEST_P(FailingRing, DeliversWhatARankSentBeforeItEnded) {
    for (const char* cumem : {"1", "0"}) {
        const std::string told = told_to_ranks("SYMM_CUMEM_HOST_ENABLE", cumem);
        run_as(RankMode::kProcess, 3, [&](Rank& rank) {
            constexpr std::size_t kCount = 450;  // at most eight steps: the root needs no credit
            std::optional<Side> side(std::in_place, rank, within(60s));
            const bool posix = told == "0" && GetParam().second == RingMemory::kHost;
            EXPECT_EQ(segment_counts().mappings > 0, posix) << told;
            std::vector<float> sent(kCount);
            std::iota(sent.begin(), sent.end(), 0.5F);
            if (rank.rank() == 0) {
                copy_to_device(side->buffer.address(), sent.data(), kCount * sizeof(float));
                side->queue(Collective::kBroadcast, protocol(), kCount);
                side->synchronize();
                side.reset();
                EXPECT_EQ(segment_counts(), SegmentCounts{});
            }
            rank.bootstrap().barrier("the root has gone");
            if (side) {
                side->queue(Collective::kBroadcast, protocol(), kCount);
                side->synchronize();
                std::vector<float> received(kCount);
                copy_to_host(received.data(), side->buffer.address(), kCount * sizeof(float));
                EXPECT_EQ(received, sent);
            }
            rank.bootstrap().barrier("end");
        });
        if (is_rank_process()) {
            return;
        }
    }
    ::unsetenv("SYMM_CUMEM_HOST_ENABLE");
}

}  // namespace
}  // namespace symm
