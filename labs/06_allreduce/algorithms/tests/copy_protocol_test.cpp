// The protocol of two shots by the copy engine between two ranks: call after call, across the wrap
// of the rounds. The original must pass; compiled as a mutant, the test must find the fault.

#include <gtest/gtest.h>

#include "labs/06_allreduce/algorithms/tests/trust.hpp"

namespace symm {
namespace {

/// A rank that makes calls by the copy engine.
struct CopySide : ProtocolSide {
    CopySide(Rank& r, std::chrono::nanoseconds limit, std::size_t slot_bytes = peer_slot_bytes(2),
             std::uint32_t epoch = 0)
        : ProtocolSide(r, limit, epoch), slots(r, slot_bytes) {}

    /// `count` elements, of each part if the ranks have parts.
    void queue(Collective collective, const float* in, float* out, std::size_t count) {
        copy.queue(stream.get(), {2, 8},
                   {{{Reduction(ReduceOp::kSum, 2), timeout.timeout(), rank.rank(), 2},
                     {{DataType::kFloat, ReduceOp::kSum, collective},
                      reinterpret_cast<CUdeviceptr>(in),
                      reinterpret_cast<CUdeviceptr>(out),
                      count}},
                    {memory.member(&ProtocolMemory::barrier), rank.rank(), 2}});
    }
    void queue(std::size_t count) { queue(Collective::kAllReduce, local->in, local->out, count); }
    /// Where a peer tells this rank that it gave up.
    CUdeviceptr gave_up(int peer) const {
        const TrustMemory* trust = slots.trust().memory.of(rank.rank());
        return reinterpret_cast<CUdeviceptr>(&trust->gave_up[peer]);
    }

    SymmetricPointer<ProtocolMemory> memory = range.pointer<ProtocolMemory>();
    SlotMemory slots;
    Copy copy{memory.member(&ProtocolMemory::copy), slots};
};

// In rounds: slots of 64 bytes, of which an AllReduce uses 48, a pack for each piece. Across the
// wrap of the counters.
TEST(Copy, IsRightCallAfterCall) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        CopySide side(rank, Deadline::standard_limit(), 64, 0xfffffff8U);
        for (unsigned call = 0; call < 10; ++call) {
            const std::size_t count = ProtocolMemory::kElements - 23 * call;
            side.prepare(call);
            side.queue(count);
            side.compare(2, count, call);
        }
        side.expect_right();
    });
}

// A ReduceScatter into this rank's part of the output, then an AllGather of the parts, in place.
// The AllGather's first copies read what the ReduceScatter's last kernel has written.
TEST(Copy, IsRightInHalves) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        CopySide side(rank, Deadline::standard_limit(), 64);
        constexpr std::size_t kCount = 100;
        float* const part = side.local->out + kCount * static_cast<std::size_t>(rank.rank());
        for (unsigned call = 0; call < 3; ++call) {
            side.prepare(call);
            side.queue(Collective::kReduceScatter, side.local->in, part, kCount);
            side.queue(Collective::kAllGather, part, side.local->out, kCount);
            side.compare(2, 2 * kCount, call);
        }
        side.expect_right();
    });
}

// Copies run even after a wait that gave up, so peers must be notified.
TEST(Copy, TellsPeersThatItGaveUp) {
    testing::expect_peers_are_told<CopySide>(2);
}

TEST(Copy, DoesNotTrustAResultBesideARankThatGaveUp) {
    testing::expect_no_trust_beside_a_rank_that_gave_up<CopySide>(2);
}

}  // namespace
}  // namespace symm
