// Rings that cannot be built, because a driver call fails or there is no room, and calls that are
// refused: all ranks learn of it, nothing is left behind, and the next ring works.

#include <gmock/gmock.h>

#include <random>

#include "common/cuda/graph.hpp"
#include "common/tests/run_as.hpp"
#include "common/tests/sanitized.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/01_vmm_alloc/memory_properties.hpp"
#include "labs/01_vmm_alloc/physical_memory.hpp"
#include "labs/03_ipc/tests/fail_each_call.hpp"
#include "labs/05_device_prims/ring/tests/ring_test.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Builds a ring on each rank. Returns the error; expects that all ranks fail or none, and that
/// those that fail leave nothing.
std::string built(Rank& rank, RingMemory memory) {
    rank.bootstrap().barrier("ready");
    const emu::Inventory before = emu::inventory();
    rank.bootstrap().barrier("counted");
    std::string error = text_thrown_by([&] { const RingCommunicator ring(rank, {memory}); });
    for (const std::string& other : rank.bootstrap().allgather_text("05: errors", error)) {
        EXPECT_EQ(other.empty(), error.empty()) << "all ranks fail, or none: " << error << other;
    }
    EXPECT_EQ(emu::inventory(), before) << error;
    rank.bootstrap().barrier("looked");
    return error;
}

class RingConstruction : public ::testing::TestWithParam<std::tuple<RankMode, RingMemory>> {
protected:
    void SetUp() override { SYMM_NEEDS(is_emulated()); }
};
INSTANTIATE_TEST_SUITE_P(
    By, RingConstruction,
    ::testing::Combine(::testing::Values(RankMode::kThread, RankMode::kProcess),
                       ::testing::Values(RingMemory::kPeer, RingMemory::kHost)),
    [](const auto& info) {
        return std::string(name_of(std::get<0>(info.param))) + "_over_" +
               std::string(name_of(std::get<1>(info.param)));
    });

TEST_P(RingConstruction, FailsOnAllRanksWhereAnyCallFailsOnOne) {
    const auto [mode, memory] = GetParam();
    run_as(mode, 2, [memory = memory](Rank& rank) {
        fail_each_call(rank, 1, {"a ring", [&](Rank& r) {
                                     return std::make_shared<RingCommunicator>(r,
                                                                               RingOptions{memory});
                                 }});
        EXPECT_EQ(built(rank, memory), "");
    });
}

TEST(RingRefuses, ConnectionsThatADeviceHasNoRoomFor) {
    SYMM_NEEDS(is_emulated());  // on a GPU others take memory meanwhile
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        const CUmemAllocationProp properties = device_memory(rank.device());
        const std::size_t unit = granularity(properties);
        int failed = 0;
        for (std::size_t left = 0;; ++left) {
            rank.bootstrap().barrier("free");
            PhysicalMemory others;
            if (rank.rank() == 1) {
                std::size_t free = 0;
                std::size_t all = 0;
                cu_check(cuMemGetInfo(&free, &all), "cuMemGetInfo()");
                others = PhysicalMemory::create(properties, free / unit * unit - left * unit);
            }
            const std::string error = built(rank, RingMemory::kPeer);
            if (error.empty()) {
                break;
            }
            EXPECT_THAT(error, AllOf(HasSubstr("cuMem"), HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
            ASSERT_LT(++failed, 20);
        }
        EXPECT_GE(failed, 3) << "a range for each protocol";
    });
}

TEST(RingRefuses, MoreRanksThanADeviceKeepsBlocks) {
    SYMM_NEEDS(is_emulated());  // a GPU keeps more blocks than there can be ranks
    const VariableInForce timeout("SYMM_TIMEOUT", "60");
    run_ranks({33, RankMode::kThread, {}, [](int) { return 0; }}, [](Rank& rank) {
        EXPECT_THAT(built(rank, RingMemory::kPeer),
                    HasSubstr("device 0 keeps 32 blocks resident at once, not one per rank"));
    });
}

TEST(RingRefuses, AStreamThatIsBeingCapturedAndGoesOn) {
    run_as(RankMode::kThread, 2, [](Rank& rank) {
        RingCommunicator ring(rank);
        const DeviceMemory buffer(400);
        const Stream stream;
        rank.bootstrap().barrier("ready");  // a capture forbids what the other rank still does
        const Graph graph = Graph::capture(stream.get(), [&] {
            RingRequest call;
            call.input = call.output = buffer.address();
            call.count = 100;
            ring.queue(call, stream.get());
            EXPECT_THAT(text_thrown_by([&] { ring.synchronize(stream, "the call"); }),
                        HasSubstr("this one is being captured"));
        });
        graph.launch(stream.get());
        ring.synchronize(stream, "the graph");
        rank.bootstrap().barrier("done");
    });
}

// The other rank has queued the call that this one refuses: the next one must not take part in it.
TEST(RingRefuses, NoCallThatAnotherRankMakesWithoutAnError) {
    const VariableInForce timeout("SYMM_TIMEOUT", "0.3");
    for (const Protocol protocol : {Protocol::kSimple, Protocol::kLL}) {
        const std::string error = error_of({2, RankMode::kThread, {}}, [&](Rank& rank) {
            RingCommunicator ring(rank);
            const DeviceMemory buffer(4096);
            const Stream stream;
            RingRequest call;
            call.protocol = protocol;
            call.count = 100;
            call.input = call.output = buffer.address() + (rank.rank() == 1 ? 2 : 0);
            if (rank.rank() == 1) {
                EXPECT_THROW(ring.queue(call, stream.get()), std::invalid_argument);
                call.input = call.output = buffer.address();
            }
            ring.queue(call, stream.get());
            ring.synchronize(stream, "the call");
            ADD_FAILURE() << "a call met another one";
        });
        EXPECT_THAT(error, HasSubstr("rank"));
    }
}

/// What makes a possible call impossible, and a part of the error.
struct Impossible {
    void (*change)(RingRequest&);
    const char* why;
};
const std::vector<Impossible> kImpossible{
    {[](RingRequest& call) { call.input += 2; }, "float buffers have to be multiples of 4"},
    {[](RingRequest& call) { call.output += 2; }, "float buffers have to be multiples of 4"},
    {[](RingRequest& call) { call.next_output += 2; }, "float buffers have to be multiples of 4"},
    {[](RingRequest& call) { call.output += 4; }, "input and output overlap"},
    {[](RingRequest& call) { call.collective = Collective::kReduceScatter, call.output += 4; },
     "input and output overlap"},
    {[](RingRequest& call) { call.collective = Collective::kAllGather, call.output += 4; },
     "input and output overlap"},
    {[](RingRequest& call) { call.type = static_cast<DataType>(99); }, ""},
    {[](RingRequest& call) { call.op = static_cast<ReduceOp>(99); }, ""},
    {[](RingRequest& call) { call.protocol = static_cast<Protocol>(99); }, ""},
    {[](RingRequest& call) { call.collective = static_cast<Collective>(99); }, ""},
    {[](RingRequest& call) { call.root = 2; }, "rank 2 cannot be the root: there are ranks 0 to 1"},
    {[](RingRequest& call) { call.root = -1; }, "rank -1 cannot be the root"},
    {[](RingRequest& call) { call.count = ~std::size_t{0} / 4; }, "do not fit in any memory"},
    {[](RingRequest& call) { call.count = ~std::size_t{0} / 8 - 9; }, "do not fit in any memory"},
    {[](RingRequest& call) { call.input = 0; }, "null pointer"},
    {[](RingRequest& call) { call.output = 0; }, "null pointer"},
    {[](RingRequest& call) { call.output = ~CUdeviceptr{99}; }, "do not fit in any memory"},
};

// Each rank makes other calls that are refused; the calls after them are right on all ranks.
TEST(RingRefuses, CallsWithoutATrace) {
    for (const RingMemory memory : {RingMemory::kPeer, RingMemory::kHost}) {
        run_as(RankMode::kThread, 2, [&](Rank& rank) {
            RingSide side(rank, {memory});
            const DeviceMemory buffer(4096);
            std::minstd_rand all(1);  // draws the same on all ranks
            std::minstd_rand own(static_cast<unsigned>(rank.rank()) + 2);
            std::size_t next = own();
            for (int round = 0; round < (kSanitized ? 20 : 100); ++round) {
                for (auto refused = all() % 5; refused > 0; --refused) {
                    RingRequest call;
                    call.input = call.output = buffer.address();
                    call.count = 100;
                    call.protocol = kProtocols.at(own() % 2);
                    const Impossible& impossible = kImpossible.at(next++ % kImpossible.size());
                    impossible.change(call);
                    EXPECT_THAT(
                        [&] { side.ring.queue(call, nullptr); },
                        ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr(impossible.why)));
                }
                side.check({.collective = static_cast<Collective>(all() % 5),
                            .protocol = kProtocols.at(all() % 2),
                            .count = all() % 500,
                            .root = static_cast<int>(all() % 2)});
            }
            RingRequest call;
            call.input = call.output = buffer.address();
            call.count = 100;
            if (memory == RingMemory::kHost) {
                call.protocol = Protocol::kLL128;
                EXPECT_THAT(text_thrown_by([&] { side.ring.queue(call, nullptr); }),
                            HasSubstr("LL128 needs stores of 128 bytes that arrive whole"));
                call.protocol = Protocol::kSimple;
            }
            if (is_emulated()) {
                rank.bootstrap().barrier("before a launch fails");
                if (rank.rank() == 1) {
                    emu::fail_call("cuLaunchKernel", 1, kInjected);
                    EXPECT_THROW(side.ring.queue(call, stream_of(rank).get()), CudaError);
                } else {
                    call.input += 2;
                    EXPECT_THROW(side.ring.queue(call, nullptr), std::invalid_argument);
                }
                rank.bootstrap().barrier("after it");
                side.check({.count = 100});
            }
            rank.bootstrap().barrier("done");
        });
    }
}

}  // namespace
}  // namespace symm
