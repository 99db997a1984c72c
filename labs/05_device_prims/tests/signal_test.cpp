// Signals, packets and meetings between threads of the host: the functions are the same as in
// kernels.

#include "labs/05_device_prims/signal.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/tests/text_thrown_by.hpp"
#include "common/tests/variable_in_force.hpp"
#include "labs/05_device_prims/few_stores.hpp"
#include "labs/05_device_prims/ll_packet.hpp"

namespace symm {
namespace {

using namespace std::chrono_literals;

// The state for a thread's waits.
struct Waits {
    explicit Waits(std::chrono::nanoseconds limit)
        : timeout{&gave_up, &report, static_cast<std::uint64_t>(limit.count())} {}

    std::uint32_t gave_up = 0;
    simt::WaitReport report{};
    simt::Timeout timeout;
    simt::Waiter waiter{timeout};
};

TEST(HasReached, IsTrueForTheValueAndForLaterOnes) {
    EXPECT_FALSE(has_reached(4, 5));
    EXPECT_TRUE(has_reached(5, 5));
    EXPECT_TRUE(has_reached(6, 5));
}

TEST(HasReached, AllowsForTheWrap) {
    EXPECT_TRUE(has_reached(0x80000000U, 0x7fffffffU));
    EXPECT_FALSE(has_reached(0x7fffffffU, 0x80000000U));
    EXPECT_TRUE(has_reached(0xffffffffU, 0xffffffffU));
    EXPECT_FALSE(has_reached(0xffffffffU, 1));
    EXPECT_TRUE(has_reached(1, 0xffffffffU));
}

// Around 0 and around 2^31, up to the largest distance that is allowed.
TEST(HasReached, AllowsForAnyDistanceBelow2To31) {
    for (const std::uint32_t first : {0U, 7U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
        for (const std::uint32_t distance : {1U, 0x80U, 0x8000U, 0x1000000U, 0x7fffffffU}) {
            EXPECT_TRUE(has_reached(first + distance, first)) << first << " + " << distance;
            EXPECT_FALSE(has_reached(first, first + distance)) << first << " + " << distance;
        }
    }
}

// Two threads, round by round: the sender begins a round when the receiver is about to wait.
void in_rounds(const std::function<void(std::uint32_t)>& send,
               const std::function<void(simt::Waiter&, std::uint32_t)>& receive) {
    constexpr std::uint32_t kRounds = 20;
    std::uint32_t ready = 0;
    std::thread sender([&] {
        Waits waits(5s);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            if (!wait_signal<simt::Order::kRelaxed>(waits.waiter, &ready,
                                                    {simt::Wait::kSignal, 0, 1, round})) {
                return;
            }
            std::this_thread::sleep_for(1ms);
            send(round);
        }
    });
    Waits waits(5s);
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        simt::store(&ready, round, simt::Order::kRelaxed);
        receive(waits.waiter, round);
    }
    sender.join();
}

std::uint64_t payload_of(std::uint32_t round) {
    return (std::uint64_t{round} << 32 | round) * 3;
}

// A payload per round, and the flag for all of them.
struct Mail {
    std::uint64_t payloads[32] = {};
    std::uint32_t flag = 0;

    void write_payload(std::uint32_t round) { payloads[round] = payload_of(round); }
    std::uint64_t read_payload(std::uint32_t round) const { return payloads[round]; }
};

// The payload is written and read plainly: the flag alone orders the two threads.
TEST(Signal, OrdersItsPayload) {
    Mail mail;
    in_rounds(
        [&](std::uint32_t round) {
            mail.write_payload(round);
            signal(&mail.flag, round);
        },
        [&](simt::Waiter& waiter, std::uint32_t round) {
            ASSERT_TRUE(wait_signal(waiter, &mail.flag, {simt::Wait::kSignal, 1, 0, round}));
            EXPECT_EQ(mail.read_payload(round), payload_of(round)) << "round " << round;
        });
}

TEST(Signal, EndsTheWaitOfALateReceiverToo) {
    Waits waits(100ms);
    std::uint32_t flag = 0;
    signal(&flag, 7);
    EXPECT_TRUE(wait_signal(waits.waiter, &flag, {simt::Wait::kSignal, 1, 0, 5}));
}

TEST(Signal, IsReportedWhereItIsNotTheOneExpected) {
    Waits waits(20ms);
    std::uint32_t flag = 0;
    signal(&flag, 3);
    EXPECT_FALSE(wait_signal(waits.waiter, &flag, {simt::Wait::kSignal, 1, 0, 5}));
    EXPECT_EQ(waits.report.seen, 3U) << "the report says that another signal was there";
}

// Explored are two and three ranks.
TEST(Meeting, OrdersWhatSixRanksWrite) {
    constexpr int kRanks = 6;
    MeetingMemory memory[kRanks] = {};
    std::uint32_t written[2][kRanks] = {};  // [round][rank]
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
        ranks.emplace_back([&, rank] {
            Waits waits(5s);
            for (std::uint32_t round = 1; round <= 4; ++round) {
                written[round % 2][rank] = round;
                ASSERT_TRUE(meet({memory, sizeof memory[0]}, rank, kRanks, round, waits.waiter))
                    << "rank " << rank << ", meeting " << round;
                for (const std::uint32_t seen : written[round % 2]) {
                    ASSERT_EQ(seen, round) << "after a meeting, rank " << rank;
                }
            }
        });
    }
    for (std::thread& rank : ranks) {
        rank.join();
    }
}

// Then no rank has failed, though the error names one.
TEST(Signal, IsMissingWhereLaunchesBlock) {
    for (const auto& [value, names_it] : {std::pair("1", true), {"0", false}, {"", false}}) {
        const VariableInForce blocking("CUDA_LAUNCH_BLOCKING", value);
        Waits waits(20ms);
        waits.waiter.fail({simt::Wait::kSignal, 1, 0, 5}, 3);
        const std::string text = testing::text_thrown_by(
            [&] { simt::throw_if_gave_up(waits.report, waits.timeout.limit_ns); });
        EXPECT_EQ(text.find("CUDA_LAUNCH_BLOCKING=1 makes each") != std::string::npos, names_it)
            << text;
    }
}

// Where only one half of a packet has arrived, the slot's other half is from the last round.
TEST(Packet, IsNotTakenWhereAHalfIsMissing) {
    for (const std::uint32_t last : {7U, 0xffffffffU}) {
        for (const int missing : {0, 1}) {
            Waits waits(20ms);
            Packet slot{};
            write_packet(&slot, payload_of(7), last);
            const Packet old = slot;
            write_packet(&slot, payload_of(8), last + 2);
            (missing == 0 ? slot.data0 : slot.data1) = missing == 0 ? old.data0 : old.data1;
            (missing == 0 ? slot.flag0 : slot.flag1) = old.flag0;
            std::uint64_t data = 0;
            EXPECT_FALSE(
                read_packet(waits.waiter, &slot, {simt::Wait::kPacket, 1, 0, last + 2}, data))
                << "half " << missing << " of the packet was not there yet";
        }
    }
}

// A slot may hold any flag. The report of a wait that gave up names it.
TEST(Packet, IsNotTakenForOneWithAnotherFlag) {
    for (const std::uint32_t flag : {0U, 7U, 9U, 0x10008U, 0x80000008U}) {
        Waits waits(20ms);
        Packet slot{};
        write_packet(&slot, payload_of(8), flag);
        std::uint64_t data = 0;
        EXPECT_FALSE(read_packet(waits.waiter, &slot, {simt::Wait::kPacket, 1, 0, 8}, data))
            << "flag " << flag << " was taken for flag 8";
        EXPECT_EQ(waits.report.seen, flag) << "the report says that another flag was there";
    }
}

TEST(Packet, BringsItsData) {
    Packet slot{};
    in_rounds([&](std::uint32_t round) { write_packet(&slot, payload_of(round), round); },
              [&](simt::Waiter& waiter, std::uint32_t round) {
                  std::uint64_t data = 0;
                  ASSERT_TRUE(read_packet(waiter, &slot, {simt::Wait::kPacket, 1, 0, round}, data))
                      << "the packet of round " << round << " was there";
                  EXPECT_EQ(data, payload_of(round)) << "not the data of round " << round;
              });
}

}  // namespace
}  // namespace symm
