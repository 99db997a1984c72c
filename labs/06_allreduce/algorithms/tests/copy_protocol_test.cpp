// The protocol of two shots by the copy engine between two ranks: call after call, across the wrap
// of the rounds. The original must pass; compiled as a mutant, the test must find the fault.

#include <gtest/gtest.h>

#include "labs/06_allreduce/algorithms/tests/protocol_kernels.hpp"

namespace symm {
namespace {

/// A rank that makes AllReduces by the copy engine.
struct CopySide : ProtocolSide {
    CopySide(Rank& r, std::size_t slot_bytes, std::chrono::nanoseconds limit,
             std::uint32_t epoch = 0)
        : ProtocolSide(r, limit, epoch), slots(r, slot_bytes) {}

    void queue(std::size_t count) {
        two_shot.queue(stream.get(), {2, 8},
                       {{{Reduction(ReduceOp::kSum, 2), timeout.timeout(), rank.rank(), 2},
                         {{},
                          reinterpret_cast<CUdeviceptr>(local->in),
                          reinterpret_cast<CUdeviceptr>(local->out),
                          count}},
                        {memory.member(&ProtocolMemory::barrier), rank.rank(), 2}});
    }
    /// Makes a call, and returns its error.
    std::string error_of_call() {
        queue(ProtocolMemory::kElements);
        try {
            synchronize();
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    }
    /// Where a peer tells this rank that it gave up.
    CUdeviceptr gave_up(int peer) const {
        const TrustMemory* trust = slots.trust().memory.of(rank.rank());
        return reinterpret_cast<CUdeviceptr>(&trust->gave_up[peer]);
    }

    SymmetricPointer<ProtocolMemory> memory = range.pointer<ProtocolMemory>();
    SlotMemory slots;
    TwoShotCopy two_shot{memory.member(&ProtocolMemory::copy), slots};
};

// In rounds: slots of 64 bytes, of which an AllReduce uses 48, a pack for each piece. Across the
// wrap of the counters.
TEST(TwoShotCopy, IsRightCallAfterCall) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        CopySide side(rank, 64, Deadline::standard_limit(), 0xfffffff8U);
        for (unsigned call = 0; call < 10; ++call) {
            const std::size_t count = ProtocolMemory::kElements - 23 * call;
            side.prepare(call);
            side.queue(count);
            side.compare(2, count, call);
        }
        side.expect_right();
    });
}

// Copies run even after a wait that gave up, so peers must be notified.
TEST(TwoShotCopy, TellsPeersThatItGaveUp) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        CopySide side(rank, peer_slot_bytes(2), std::chrono::milliseconds{300});
        if (rank.rank() == 0) {
            EXPECT_NE(side.error_of_call(), "");
        }
        rank.bootstrap().barrier("gave up");
        if (rank.rank() == 1) {
            std::uint32_t gave_up = 0;
            copy_to_host(&gave_up, side.gave_up(0), sizeof(gave_up));
            EXPECT_NE(gave_up, 0U) << "rank 1 was not notified";
        }
        rank.bootstrap().barrier("done");
    });
}

TEST(TwoShotCopy, DoesNotTrustAResultBesideARankThatGaveUp) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        CopySide side(rank, peer_slot_bytes(2), Deadline::standard_limit());
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
