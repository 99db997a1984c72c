// If one thread's wait gives up, all threads of its group leave together, and no
// peer gets anything more.

#include <gmock/gmock.h>

#include <algorithm>

#include "labs/05_device_prims/ring/ll.hpp"
#include "labs/05_device_prims/ring/ll128.hpp"
#include "labs/05_device_prims/ring/simple.hpp"
#include "labs/05_device_prims/ring/tests/steps_test.hpp"

namespace symm {
namespace {

using namespace testing;

class GivingUp : public TwoSides {
protected:
    GivingUp() : TwoSides(300ms) {}
    Side& relay = receiver;
};

// Step 0 into channel 1, a step from channel 0 to channel 1, and one more into channel 1.
template <template <class, class> class ProtocolOf>
struct RelayKernel {
    using Proto = ProtocolOf<std::int32_t, simt::ThreadBlock>;

    Connection from_prev;
    Connection to_next;
    std::int32_t* output;
    std::size_t count;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const RingEnds ends{from_prev.end(0), to_next.end(0), 1, 0, 2, timeout};
        Proto protocol(block, ends, {ReduceOp::kSum, 3}, {},
                       block.shared<typename Proto::Shared>());
        Primitives<Proto, std::int32_t> prims(protocol);
        prims.send(output, count);
        prims.recv_copy_send(output, count);
        prims.send(output, count);
        protocol.finish();
    }
};

template <template <class, class> class ProtocolOf>
class Relay : public GivingUp {
protected:
    // Nothing has been sent to the relay, so it makes no step after step 0. `posted` is the tail.
    void run(std::uint64_t posted = 0) {
        using Kernel = RelayKernel<ProtocolOf>;
        fill(relay, 0, 1);
        relay.start(Kernel{channel(0).from_prev(), channel(1).to_next(), relay.elements(),
                           most_elements<typename Kernel::Proto>(), relay.timeout.timeout()},
                    32, sizeof(typename Kernel::Proto::Shared));
        EXPECT_THAT(relay.error(), ::testing::HasSubstr("rank 1 waited 0.3 s in a kernel"));
        EXPECT_EQ(channel(0).send.head, 0U) << "it released a slot";
        EXPECT_EQ(channel(1).receive.tail, posted) << "it posted a step";
        const auto* slots = channel(1).slots;
        EXPECT_TRUE(std::all_of(slots + kSlotBytes, slots + sizeof(Channel::slots),
                                [](std::byte byte) { return byte == std::byte{0}; }))
            << "it sent data";
    }
};
using RelayBySimple = Relay<Simple>;
using RelayByLL = Relay<LL>;
using RelayByLL128 = Relay<LL128>;

TEST_F(RelayBySimple, SendsNothingMore) {
    run(1);
}
TEST_F(RelayByLL, SendsNothingMore) {
    run();
}
TEST_F(RelayByLL128, SendsNothingMore) {
    run();
}

// Only one half of a packet has arrived.
TEST_F(GivingUp, TakesNothingWhereAHalfOfAPacketIsMissing) {
    auto* packet = reinterpret_cast<simt::Pack16*>(channel().slots);
    packet->half[0] = ~std::uint64_t{0} >> 32 | std::uint64_t{1} << 32;  // with flag 1
    start<LL>(relay, 0, 1, 2, 8);
    EXPECT_THAT(relay.error(), ::testing::HasSubstr("for a packet from rank 0"));
    EXPECT_EQ(relay.elements()[0], 0) << "it took a part of the packet";
}

class GivingUpLines : public GivingUp {
protected:
    // Only these lines of a unit have arrived. Its rounds begin with lines 0 and 4.
    void take_nothing(std::initializer_list<std::size_t> lines) {
        auto* packs = reinterpret_cast<simt::Pack16*>(channel().slots);
        for (const std::size_t line : lines) {
            for (std::size_t i = 0; i < simt::kLineLanes; ++i) {
                packs[line * simt::kLineLanes + i] = {{~std::uint64_t{0}, 1}};  // with flag 1
            }
        }
        start<LL128>(relay, 0, 1, kMost, 32);
        EXPECT_THAT(relay.error(), ::testing::HasSubstr("rank 1 waited 0.3 s in a kernel"));
        const std::int32_t* output = relay.elements();
        EXPECT_TRUE(std::all_of(output, output + kMost, [](std::int32_t i) { return i == 0; }))
            << "it took a part of the lines";
    }
};

// The lanes of the line that is there give up with the others of their warp.
TEST_F(GivingUpLines, TakeNothingWhereALineOfAWarpIsMissing) {
    take_nothing({0, 4});
}
TEST_F(GivingUpLines, TakeNothingWhereTheSecondRoundIsMissing) {
    take_nothing({0, 1, 2, 3});
}

// The sender names a different number of elements than the receiver.
TEST_F(GivingUp, EndsAStepOfAnotherSize) {
    start<Simple>(sender, 0, 1, 33, 8);
    start<Simple>(receiver, 0, 1, 34, 8);
    EXPECT_EQ(sender.error(), "");
    EXPECT_EQ(
        receiver.error(),
        "rank 1 expected 136 more bytes of a message from rank 0, which sends 132: both sides "
        "must pass the same number of bytes, in the same order of calls");
}

}  // namespace
}  // namespace symm
