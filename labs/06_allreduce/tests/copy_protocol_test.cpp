// The protocol of two shots by the copy engine between two ranks: call after call, over the wrap of
// the rounds. Sound as it is; compiled as a mutant, the test has to find what was taken out.

#include <gtest/gtest.h>

#include "common/cuda/copy.hpp"
#include "common/cuda/device_memory.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/06_allreduce/tests/protocol_kernels.hpp"

namespace symm {
namespace {

// In rounds: of the scratch memory only 64 bytes are used. Over the wrap of the counters.
TEST(TwoShotCopy, IsRightCallAfterCall) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(ProtocolMemory));
        KernelTimeout timeout;
        const DeviceMemory wrong(sizeof(unsigned));
        const Stream stream;
        auto* local = range.at<ProtocolMemory>(rank.rank());
        launch_reset(stream.get(), local, 0xfffffff8U, 0);
        stream.synchronize();
        TwoShotCopy two_shot(rank, &range.at<ProtocolMemory>(0)->copy, range.stride(), 64);
        for (unsigned call = 0; call < 10; ++call) {
            const std::size_t count = ProtocolMemory::kElements - 23 * call;
            launch_prepare(stream.get(), local, rank.rank(), call);
            two_shot.queue(stream.get(), {2, 8}, DataType::kFloat,
                           two_shot_call(range.at<ProtocolMemory>(0), range.stride(), rank.rank(),
                                         count, timeout.timeout()),
                           range.stride());
            launch_compare(stream.get(), local, 2, count, call, wrong.as<unsigned>());
        }
        timeout.synchronize(stream, "the AllReduces");
        unsigned errors = 0;
        copy_to_host(&errors, wrong.address(), sizeof(errors));
        EXPECT_EQ(errors, 0U) << "wrong values on rank " << rank.rank();
        rank.bootstrap().barrier("done");
    });
}

}  // namespace
}  // namespace symm
