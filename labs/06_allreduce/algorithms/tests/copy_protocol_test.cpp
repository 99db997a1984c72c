// The protocol of two shots by the copy engine between two ranks: call after call, across the wrap
// of the rounds. The original must pass; compiled as a mutant, the test must find the fault.

#include <gtest/gtest.h>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/algorithms/tests/protocol_kernels.hpp"

namespace symm {
namespace {

TwoShotCopy two_shot_copy(Rank& rank, const SymmetricRange& range, std::size_t scratch_bytes) {
    const auto memory = range.pointer<ProtocolMemory>();
    return {rank, memory.member(&ProtocolMemory::copy), memory.member(&ProtocolMemory::trust),
            SymmetricRange(rank, scratch_bytes)};
}

/// Arguments of a rank's AllReduce.
CopyCall copy_call(const SymmetricRange& range, int rank, std::size_t count,
                   const simt::Timeout& timeout) {
    const auto memory = range.pointer<ProtocolMemory>();
    const ProtocolMemory* local = memory.of(rank);
    return {Collective::kAllReduce,
            reinterpret_cast<CUdeviceptr>(local->in),
            reinterpret_cast<CUdeviceptr>(local->out),
            count,
            DataType::kFloat,
            Reduction(ReduceOp::kSum, 2),
            {memory.member(&ProtocolMemory::barrier), rank, 2},
            timeout};
}

// In rounds: slots of 64 bytes, of which an AllReduce uses 48, a pack for each piece. Across the
// wrap of the counters.
TEST(TwoShotCopy, IsRightCallAfterCall) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout;
        const DeviceMemory wrong(sizeof(unsigned));
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, 0xfffffff8U, 0);
        stream.synchronize();
        TwoShotCopy two_shot = two_shot_copy(rank, range, 128);
        for (unsigned call = 0; call < 10; ++call) {
            const std::size_t count = ProtocolMemory::kElements - 23 * call;
            launch_prepare(stream.get(), local, rank.rank(), call);
            two_shot.queue(stream.get(), {2, 8},
                           copy_call(range, rank.rank(), count, timeout.timeout()));
            launch_compare(stream.get(), local, 2, count, call, wrong.as<unsigned>());
        }
        timeout.synchronize(stream, "the AllReduces");
        unsigned errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        EXPECT_EQ(errors, 0U) << "wrong values on rank " << rank.rank();
        rank.bootstrap().barrier("done");
    });
}

/// A rank of the tests in which a call fails.
struct FailingSide {
    FailingSide(Rank& rank, std::chrono::nanoseconds limit)
        : rank_(rank),
          range_(rank, sizeof(ProtocolMemory)),
          timeout_(limit),
          two_shot_(two_shot_copy(rank, range_, TwoShotCopy::scratch_bytes(2))) {
        launch_reset(stream_.get(), memory(rank.rank()), 0, 0);
        launch_prepare(stream_.get(), memory(rank.rank()), rank.rank(), 0);
        stream_.synchronize();
        rank.bootstrap().barrier("prepared");
    }

    ProtocolMemory* memory(int rank) const { return range_.at<ProtocolMemory>(rank); }
    /// Where a peer tells this rank that it gave up.
    CUdeviceptr gave_up(int peer) const {
        return reinterpret_cast<CUdeviceptr>(&memory(rank_.rank())->trust.gave_up[peer]);
    }
    /// Makes a call, and returns its error.
    std::string error_of_call() {
        two_shot_.queue(
            stream_.get(), {2, 8},
            copy_call(range_, rank_.rank(), ProtocolMemory::kElements, timeout_.timeout()));
        try {
            timeout_.synchronize(stream_, "the AllReduce");
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    }

private:
    Rank& rank_;
    SymmetricRange range_;
    KernelTimeout timeout_;
    Stream stream_;
    TwoShotCopy two_shot_;
};

// Copies run even after a wait that gave up, so peers must be notified.
TEST(TwoShotCopy, TellsPeersThatItGaveUp) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        FailingSide side(rank, std::chrono::milliseconds{300});
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
        FailingSide side(rank, Deadline::standard_limit());
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
