// Single steps of the protocols between two ranks: credits, counts, the return of flags, whole
// lines; and groups that are smaller than a block.

#include "labs/05_device_prims/ring/tests/steps_test.hpp"

#include <cstring>

#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/simple.hpp"

namespace symm {
namespace {

using namespace testing;

// Two groups of one block: warp 0 sends, warps 1 and 2 receive the same steps.
template <template <class, class> class ProtocolOf>
struct SpansKernel {
    using Proto = ProtocolOf<std::int32_t, simt::WarpSpan>;

    StepsParams call;
    std::int32_t* sent;
    std::int32_t* received;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const bool sends = block.thread_rank() < simt::kWarpSize;
        const simt::WarpSpan span(block, sends ? 0 : 1, sends ? 1 : 2, sends ? 1 : 2);
        make_steps<Proto>(span, call, sends, sends ? sent : received,
                          block.shared<typename Proto::Shared>() + (sends ? 0 : 1));
    }
};

class SingleSteps : public TwoSides {
protected:
    SingleSteps() : TwoSides(3s) {}

    // Sets the counters as if `step` steps had been made.
    void begin_at(std::uint64_t step) {
        channel().send.head = channel().sent = channel().received = step;
    }
    // Two launches on a fresh channel, the second of which begins with the counts of the first.
    template <template <class, class> class ProtocolOf>
    void groups() {
        using Kernel = SpansKernel<ProtocolOf>;
        constexpr std::size_t kCount = most_elements<typename Kernel::Proto>();
        std::memset(&channel(), 0, sizeof(Channel));
        for (const std::uint32_t first : {0, 20}) {
            fill(sender, first, 20);
            fill(receiver, first, 20);
            sender.start(Kernel{call(sender, 20, kCount), sender.elements(), receiver.elements()},
                         3 * simt::kWarpSize, 2 * sizeof(typename Kernel::Proto::Shared));
            finish(first, 20, kCount);
        }
    }
};

// What fits into eight slots is sent at once. A new launch does not know yet that all are full.
TEST_F(SingleSteps, WaitForTheCreditOfAnEarlierLaunch) {
    start<LL>(sender, 0, kSteps, 33, 8);
    sender.wait("what the slots hold");
    start<LL>(sender, 0, 1, 33, 8);
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(sender.stream.finished());
    start<LL>(receiver, 0, kSteps, 33, 8);
    finish(0, kSteps, 33);
}

// The slots still hold the packets of the last launch, with the flags of its steps.
TEST_F(SingleSteps, GoOnWhereTheLastLaunchEnded) {
    for (std::uint32_t first = 0; first < 9; first += 3) {
        start<LL>(receiver, first, 3, 16, 8);
        std::this_thread::sleep_for(20ms);  // the receiver polls before anything is sent
        start<LL>(sender, first, 3, 16, 8);
        finish(first, 3, 16);
    }
}

// Packets that short steps have never overwritten still hold the flags of 2^32 steps ago.
TEST_F(SingleSteps, StayRightWhenFlagsReturn) {
    for (const std::uint64_t turn : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
        begin_at(turn - kSteps);
        auto* stale = reinterpret_cast<Packet*>(channel().slots);  // the slot of step `turn`
        const auto flag = static_cast<std::uint32_t>(turn + 1);
        for (std::size_t i = 0; i < kSlotBytes / sizeof(Packet); ++i) {
            write_packet(stale + i, 0xdeaddeaddeaddeadU, flag);
        }
        start<LL>(sender, 0, kSteps, 1, 8);
        start<LL>(receiver, 0, kSteps, 1, 8);
        finish(0, kSteps, 1);
        start<LL>(receiver, 100, 3, 200, 8);
        std::this_thread::sleep_for(50ms);  // the receiver polls before anything is sent
        start<LL>(sender, 100, 3, 200, 8);
        finish(100, 3, 200);
    }
}

TEST_F(SingleSteps, TakeLinesWhole) {
    for (std::uint32_t turn = 0; turn < 10; ++turn) {
        start<LL128>(receiver, turn * 50, 50, kMost - 5, 32);
        start<LL128>(sender, turn * 50, 50, kMost - 5, 32);
        finish(turn * 50, 50, kMost - 5);
    }
}

TEST_F(SingleSteps, OneGroupSendsWhileTheOtherReceives) {
    groups<Simple>();
    groups<LL>();
    groups<LL128>();
}

}  // namespace
}  // namespace symm
