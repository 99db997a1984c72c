// The primitives between two ranks: sound as they are, and without one order or sync if
// this is compiled as a mutant (cmake/Mutants.cmake).

#include <gtest/gtest.h>

#include "common/cuda/copy.hpp"
#include "common/cuda/kernel_timeout.hpp"
#include "common/ranks/ranks.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/latency_kernels.hpp"

namespace symm {
namespace {

template <class Launch>
void on_two_ranks(const Launch& launch) {
    run_ranks({2, RankMode::kThread, {}}, [&](Rank& rank) {
        const SymmetricRange range(rank, sizeof(LatencyMemory));
        KernelTimeout timeout;
        const Stream stream;
        zero(range.local(), sizeof(LatencyMemory));
        rank.bootstrap().barrier("zeroed");
        launch(rank.rank(), range, stream, timeout.timeout());
        timeout.synchronize(stream, "the kernel");
        rank.bootstrap().barrier("done");
    });
}

// The payload is written plainly on one rank and read plainly on the other: the flag alone orders
// them.
TEST(PingPong, OrdersItsPayload) {
    on_two_ranks([](int me, const SymmetricRange& range, const Stream& stream,
                    const simt::Timeout& timeout) {
        launch_ping_pong(stream.get(),
                         {range.at<LatencyMemory>(me), range.at<LatencyMemory>(1 - me), timeout,
                          Carrier::kSignal, me, 1 - me, 1, 20});
    });
}

// The last thread of a block writes, the first ones signal and wait, and all read.
TEST(BarrierRounds, OrdersItsBuffers) {
    on_two_ranks([](int me, const SymmetricRange& range, const Stream& stream,
                    const simt::Timeout& timeout) {
        launch_barrier_rounds(stream.get(), {range.pointer<LatencyMemory>(), me, 2, timeout, 1, 20},
                              2, 8);
    });
}

}  // namespace
}  // namespace symm
