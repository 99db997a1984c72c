// A trace records what blocks did: the primitives in ring.hpp's order, one after the other, and no
// data used before it was sent.

#include <gmock/gmock.h>

#include "labs/05_device_prims/ring/ring_trace.hpp"
#include "labs/05_device_prims/ring/tests/ring_test.hpp"

namespace symm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

/// Rank 0's slices of two calls of an AllReduce, on one channel. No chunk is empty: an empty step
/// of LL would not wait.
std::vector<TraceSlice> recorded(Protocol protocol, std::uint32_t capacity) {
    std::vector<TraceSlice> slices;
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        const Stream& stream = testing::stream_of(rank);
        RingOptions options;
        options.channels = 1;
        RingCommunicator ring(rank, options);
        const DeviceMemory data(96 * sizeof(float));
        const RingTrace trace(rank, 1, capacity);
        RingRequest call{
            .protocol = protocol, .input = data.address(), .output = data.address(), .count = 96};
        ring.queue(call, stream.get());  // is not recorded
        call.trace = trace.buffers();
        ring.queue(call, stream.get());
        ring.queue(call, stream.get());
        ring.synchronize(stream, "two recorded calls");
        const std::vector<TraceSlice> collected = trace.collect();
        if (rank.rank() == 0) {
            slices = collected;
        } else {
            EXPECT_TRUE(collected.empty());
        }
    });
    return slices;
}

class Traces : public ::testing::TestWithParam<Protocol> {};

INSTANTIATE_TEST_SUITE_P(Of, Traces, ::testing::ValuesIn(kProtocols),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(Traces, ListThePrimitivesInTheOrderOfTheRing) {
    std::map<int, std::vector<std::string>> primitives;
    for (const TraceSlice& slice : recorded(GetParam(), 256)) {
        if (slice.event == TraceEvent::kMove) {
            primitives[slice.rank].push_back(primitive_name(slice.move));
        }
    }
    ASSERT_EQ(primitives.size(), kRanks);
    for (const auto& [rank, names] : primitives) {
        EXPECT_THAT(names, ElementsAre("send", "recv_reduce_send", "recv_reduce_copy_direct_send",
                                       "direct_recv_copy_direct_send", "direct_recv", "send",
                                       "recv_reduce_send", "recv_reduce_copy_direct_send",
                                       "direct_recv_copy_direct_send", "direct_recv"))
            << "rank " << rank;
    }
}

TEST_P(Traces, SlicesFollowEachOtherAndStepsAreCounted) {
    std::map<int, TraceSlice> last;
    for (const TraceSlice& slice : recorded(GetParam(), 256)) {
        EXPECT_LE(slice.begin_ns, slice.end_ns);
        const auto before = last.find(slice.rank);
        if (before != last.end()) {
            EXPECT_GE(slice.begin_ns, before->second.end_ns);
            const Move& move = before->second.move;  // of a wait: nothing
            EXPECT_EQ(slice.received, before->second.received + (move.receive ? 1 : 0));
            EXPECT_EQ(slice.sent, before->second.sent + (move.send ? 1 : 0));
        }
        last[slice.rank] = slice;
    }
    for (const auto& [rank, slice] : last) {
        EXPECT_EQ(slice.received, 3 * 4 - 1) << "rank " << rank;  // before the third call's last
    }
}

TEST_P(Traces, NoStepIsReceivedBeforeItIsSent) {
    std::vector<TraceSlice> slices;
    run_ranks({kRanks, RankMode::kThread, {}}, [&](Rank& rank) {
        RingCommunicator ring(rank);
        const DeviceMemory data(8192);
        RingRequest call{.protocol = GetParam(), .count = 1152};  // no chunk is empty
        call.input = call.output = data.address();
        const auto recorded = record_call(rank, ring, testing::stream_of(rank), call);
        if (rank.rank() == 0) {
            slices = recorded;
        }
    });
    int steps = 0;
    for_steps(slices, kRanks, [&](const TraceSlice& from, const TraceSlice& to) {
        EXPECT_LE(from.begin_ns, to.end_ns) << "step " << to.received;
        ++steps;
    });
    EXPECT_GE(steps, kRanks * 4);
}

TEST_P(Traces, AFullBufferKeepsTheNewestRecords) {
    const std::vector<TraceSlice> all = recorded(GetParam(), 256);
    const std::vector<TraceSlice> newest = recorded(GetParam(), 4);
    ASSERT_GT(all.size(), newest.size());
    for (int rank = 0; rank < kRanks; ++rank) {
        std::vector<std::uint64_t> steps;
        for (const TraceSlice& slice : newest) {
            if (slice.rank == rank) {
                steps.push_back(slice.received);
            }
        }
        ASSERT_EQ(steps.size(), 3U);  // four records, the last of them the end
        EXPECT_EQ(steps.back(), 11U);
    }
}

const TraceSlice kSent{0, 1, TraceEvent::kMove, {.send = true, .source = true}, 3, 7, 5000, 6500};
const TraceSlice kWaited{1, 1, TraceEvent::kWaitData, {}, 7, 2, 5500, 7000};
const TraceSlice kReceived{1,    1,   TraceEvent::kMove, {.receive = true, .output = true}, 7, 2,
                           7000, 8000};
const std::vector<TraceSlice> kSlices{kSent, kWaited, kReceived};

TEST(ClockOffsets, AreFoundFromTheFastestStepsOnceAroundTheRing) {
    constexpr std::array<std::int64_t, 3> kAhead{0, 40'000, -3'000};
    std::vector<TraceSlice> slices;
    for (std::uint64_t step = 0; step < 20; ++step) {
        for (int rank = 0; rank < 3; ++rank) {
            const auto at = [&, end = 100'000 + 5'000 * step](int of, std::uint64_t later) {
                return end + later + static_cast<std::uint64_t>(kAhead.at(of));
            };
            const int next = (rank + 1) % 3;
            const std::uint64_t trip = 900 + (step * 7 + rank) % 20 * 50;  // once 900 on each link
            slices.push_back({rank, 0, TraceEvent::kMove, {.send = true}, 0, step, 0, at(rank, 0)});
            slices.push_back(
                {next, 0, TraceEvent::kMove, {.receive = true}, step, 0, 0, at(next, trip)});
        }
    }
    EXPECT_THAT(clock_offsets(slices, 3), ElementsAre(0, 40'000, -3'000));
}

TEST(ChromeTrace, HasASlicePerSliceAndAnArrowPerStep) {
    const std::string json = chrome_trace(kSlices, 2);
    EXPECT_THAT(json,
                HasSubstr(R"({"ph":"X","name":"send","pid":0,"tid":1,"ts":0.000,"dur":1.500)"));
    EXPECT_THAT(json,
                HasSubstr(R"("name":"wait for data","pid":1,"tid":1,"ts":0.500,"dur":1.500)"));
    EXPECT_THAT(json, HasSubstr(R"({"ph":"s","name":"step","cat":"step","id":0,"pid":0)"));
    EXPECT_THAT(json, HasSubstr(R"({"ph":"f","bp":"e","name":"step","cat":"step","id":0,"pid":1)"));
}

}  // namespace
}  // namespace symm
