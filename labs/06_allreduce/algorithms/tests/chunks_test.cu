// Two shots in chunks on three ranks: several calls in a row, step numbers that wrap, and a rank
// that gives up. The original must pass; compiled as a mutant, the test must find the fault.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/launch.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/two_shot_chunks/two_shot_chunks.hpp"

namespace symm {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kElements = 250;
constexpr std::size_t kSlot = 24;             // packs
constexpr std::uint32_t kSteps = 0xfffffffa;  // of each block at the start

struct Memory {
    RendezvousMemory rendezvous;
    BarrierMemory barrier;
    ChunksMemory chunks;
    TrustMemory trust;
    alignas(16) simt::Pack16 slots[(kRanks - 1) * kSlot];
    alignas(16) float in[kElements];
    alignas(16) float out[kElements];
};

/// Unique to rank, call and index. Sums of these values are exact.
float input_of(int rank, unsigned call, std::size_t i) {
    return static_cast<float>(3000 * call + 10 * i + static_cast<std::size_t>(rank));
}

class Side {
public:
    Side(Rank& rank, std::chrono::nanoseconds limit, unsigned blocks = 2)
        : rank_(rank), range_(rank, sizeof(Memory)), timeout_(limit), blocks_(blocks) {
        zero(range_.local(), sizeof(Memory));
        ChunksMemory started{};
        for (std::size_t b = 0; b < kMaxBarrierBlocks; ++b) {
            started.steps[b] = kSteps;
            std::fill_n(started.sent[b], kMaxBarrierRanks, kSteps);
        }
        copy_to_device(range_.local() + offsetof(Memory, chunks), &started, sizeof(started));
        rank.bootstrap().barrier("ready");
    }

    /// Makes a call of `count` elements, and checks the sums.
    void call(unsigned number, std::size_t count, bool in_place) {
        std::array<float, kElements> values{};
        for (std::size_t i = 0; i < kElements; ++i) {
            values.at(i) = input_of(rank_.rank(), number, i);
        }
        copy_to_device(in(), values.data(), sizeof(values));
        fill(out(), 0xff, sizeof(values));
        launch_call(count, in_place);
        timeout_.synchronize(stream_, "the AllReduce");
        copy_to_host(values.data(), in_place ? in() : out(), sizeof(values));
        for (std::size_t i = 0; i < count; ++i) {
            float expected = 0;
            for (int p = 0; p < kRanks; ++p) {
                expected += input_of(p, number, i);
            }
            ASSERT_EQ(values.at(i), expected)
                << "wrong values: element " << i << " of " << count << ", call " << number;
        }
        rank_.bootstrap().barrier("checked");
    }

    /// Makes a call, and returns its error, or an empty string.
    std::string error_of_call() {
        launch_call(kElements, false);
        try {
            timeout_.synchronize(stream_, "the AllReduce");
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    }

    CUdeviceptr gave_up(int rank) const {
        return range_.local() + offsetof(Memory, trust.gave_up) +
               static_cast<std::size_t>(rank) * sizeof(std::uint32_t);
    }

private:
    CUdeviceptr in() const { return range_.local() + offsetof(Memory, in); }
    CUdeviceptr out() const { return range_.local() + offsetof(Memory, out); }

    void launch_call(std::size_t count, bool in_place) {
        using Kernel = TwoShotChunks<float, 4>;
        const int r = rank_.rank();
        const Buffers mine{in(), in_place ? in() : out()};
        constexpr unsigned kChunk = 3;
        launch(stream_.get(), blocks_, 4,
               Kernel{{{{{Reduction(ReduceOp::kSum, kRanks), timeout_.timeout(), r, kRanks},
                         {{}, mine.in, mine.out, count}},
                        {range_.pointer<RendezvousMemory>(offsetof(Memory, rendezvous)),
                         r,
                         kRanks,
                         {mine, mine, mine}},
                        {range_.pointer<BarrierMemory>(offsetof(Memory, barrier)), r, kRanks}},
                       range_.pointer<ChunksMemory>(offsetof(Memory, chunks)),
                       {range_.pointer<TrustMemory>(offsetof(Memory, trust)), r, kRanks},
                       {range_.pointer<simt::Pack16>(offsetof(Memory, slots)), kSlot},
                       kChunk}},
               Kernel::kSharedBytes);
    }

    Rank& rank_;
    SymmetricRange range_;
    KernelTimeout timeout_;
    unsigned blocks_;
    Stream stream_;
};

// Counts range from less than one pack to parts of several chunks. Some parts are shorter.
TEST(TwoShotChunks, IsRightCallAfterCall) {
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, Deadline::standard_limit());
        for (unsigned number = 0;
             const std::size_t count : {250UL, 3UL, 4UL, 13UL, 144UL, 148UL, 249UL, 61UL}) {
            side.call(number, count, number % 3 == 2);
            ++number;
        }
    });
}

TEST(TwoShotChunks, TellsPeersThatItGaveUp) {
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, std::chrono::milliseconds{300});
        if (rank.rank() == 0) {
            EXPECT_NE(side.error_of_call(), "");
        }
        rank.bootstrap().barrier("gave up");
        if (rank.rank() == 1) {
            std::uint32_t told = 0;
            copy_to_host(&told, side.gave_up(0), sizeof(told));
            EXPECT_NE(told, 0U) << "rank 1 was not notified";
        }
        rank.bootstrap().barrier("done");
    });
}

// With one block: it fails only after it has passed the end, so no peer waits for it.
TEST(TwoShotChunks, DoesNotTrustAResultBesideARankThatGaveUp) {
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        Side side(rank, Deadline::standard_limit(), 1);
        if (rank.rank() == 1) {
            constexpr std::uint32_t kGaveUp = 1;
            copy_to_device(side.gave_up(0), &kGaveUp, sizeof(kGaveUp));
        }
        const std::string error = side.error_of_call();
        if (rank.rank() == 1) {
            EXPECT_NE(error.find("rank 0 gave up"), std::string::npos)
                << "the call did not fail: " << error;
        } else {
            EXPECT_EQ(error, "");
        }
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
