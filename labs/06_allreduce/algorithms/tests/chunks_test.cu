// Two shots in chunks on three ranks: several calls in a row, step numbers that wrap, and a rank
// that gives up. The original must pass; compiled as a mutant, the test must find the fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "common/cuda/launch.hpp"
#include "labs/06_allreduce/algorithms/chunks/chunks.hpp"
#include "labs/06_allreduce/algorithms/tests/trust.hpp"

namespace symm {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kSlot = 24;             // packs
constexpr std::uint32_t kSteps = 0xfffffffa;  // of each block at the start

struct Memory {
    ChunksMemory chunks;  // words: numbers of steps, then turns
    TrustMemory trust;
    alignas(16) simt::Pack16 inputs[(kRanks - 1) * kSlot];
    alignas(16) simt::Pack16 sums[(kRanks - 1) * kSlot];
};

template <unsigned kBlocks, bool kUnpacks = false>
struct ChunksSide : ProtocolSide {
    ChunksSide(Rank& r, std::chrono::nanoseconds limit)
        : ProtocolSide(r, limit), shared(r, sizeof(Memory)) {
        const auto started = std::make_unique<Memory>();
        std::fill_n(reinterpret_cast<std::uint32_t*>(&started->chunks),
                    offsetof(ChunksMemory, turns) / sizeof(kSteps), kSteps);
        copy_to_device(shared.local(), started.get(), sizeof(*started));
        r.bootstrap().barrier("ready");
    }
    void queue(std::size_t count) {
        using Kernel = Chunks<float, 4>;
        const int me = rank.rank();
        const Buffers mine{reinterpret_cast<CUdeviceptr>(local->in),
                           reinterpret_cast<CUdeviceptr>(local->out)};
        const auto memory = range.pointer<ProtocolMemory>();
        constexpr unsigned kChunk = 3;
        launch(
            stream.get(), kBlocks, 4,
            Kernel{{{{{Reduction(ReduceOp::kSum, kRanks), timeout.timeout(), me, kRanks},
                      {{}, mine.in, mine.out, count}},
                     {memory.member(&ProtocolMemory::rendezvous), me, kRanks, {mine, mine, mine}},
                     {memory.member(&ProtocolMemory::barrier), me, kRanks}},
                    shared.pointer<ChunksMemory>(offsetof(Memory, chunks)),
                    {shared.pointer<TrustMemory>(offsetof(Memory, trust)), me, kRanks},
                    {shared.pointer<simt::Pack16>(offsetof(Memory, inputs)), kSlot},
                    {shared.pointer<simt::Pack16>(offsetof(Memory, sums)), kSlot},
                    0,
                    kChunk,
                    kUnpacks}},
            Kernel::kSharedBytes);
    }
    CUdeviceptr gave_up(int peer) const {
        return shared.local() + offsetof(Memory, trust.gave_up) +
               static_cast<std::size_t>(peer) * sizeof(std::uint32_t);
    }

    SymmetricRange shared;
};

// Counts range from less than one pack to parts of several chunks. Some parts are shorter.
template <bool kUnpacks>
void expect_right_call_after_call() {
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        ChunksSide<2, kUnpacks> side(rank, Deadline::standard_limit());
        for (unsigned call = 0;
             const std::size_t count : {250UL, 3UL, 4UL, 13UL, 144UL, 148UL, 249UL, 61UL}) {
            side.prepare(call);
            side.queue(count);
            side.compare(kRanks, count, call++);
        }
        side.expect_right();
    });
}

TEST(Chunks, IsRightCallAfterCall) {
    expect_right_call_after_call<false>();
}
TEST(Chunks, IsRightWithoutWindows) {
    expect_right_call_after_call<true>();
}

TEST(Chunks, TellsPeersThatItGaveUp) {
    testing::expect_peers_are_told<ChunksSide<2>>(kRanks);
}

// With one block: it fails only after it has passed the end, so no peer waits for it.
TEST(Chunks, DoesNotTrustAResultBesideARankThatGaveUp) {
    testing::expect_no_trust_beside_a_rank_that_gave_up<ChunksSide<1>>(kRanks);
}

}  // namespace
}  // namespace symm
