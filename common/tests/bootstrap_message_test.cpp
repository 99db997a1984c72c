// Packets may come from any process: decode() must refuse or correctly decode whatever it gets.

#include "common/bootstrap/message.hpp"

#include <gtest/gtest.h>

#include <random>

#include "common/bootstrap/bootstrap.hpp"
#include "common/tests/meet.hpp"

namespace symm {
namespace {

Message example(std::size_t payload) {
    return {.kind = MessageKind::kAllgather,
            .rank = 3,
            .size = 5,
            .number = 77,
            .deadline = Deadline::after(std::chrono::seconds(5)),
            .name = "sizes",
            .payload = testing::unique_bytes(3, 1, payload)};
}

TEST(Message, ArrivesAsItWasSent) {
    for (const std::size_t payload :
         {std::size_t{0}, std::size_t{1}, std::size_t{4097}, kMaxContribution}) {
        const Message sent = example(payload);
        std::string why_not;
        const auto got = decode(encode(sent), why_not);
        ASSERT_TRUE(got) << why_not;
        EXPECT_EQ(got->kind, sent.kind);
        EXPECT_EQ(got->rank, sent.rank);
        EXPECT_EQ(got->size, sent.size);
        EXPECT_EQ(got->number, sent.number);
        EXPECT_EQ(got->deadline.end(), sent.deadline.end());
        EXPECT_EQ(got->deadline.limit(), sent.deadline.limit());
        EXPECT_EQ(got->name, sent.name);
        EXPECT_EQ(got->payload, sent.payload);
    }
}

TEST(Message, LongNamesAreCut) {
    Message message = example(0);
    message.name = std::string(100, 'n');
    std::string why_not;
    EXPECT_EQ(decode(encode(message), why_not)->name, std::string(kMaxName, 'n'));
}

TEST(Message, EveryTruncationOfTheHeadIsRefused) {
    const auto packet = encode(example(0));
    for (std::size_t length = 0; length < packet.size(); ++length) {
        std::string why_not;
        EXPECT_FALSE(decode(std::span(packet).first(length), why_not)) << length;
        EXPECT_FALSE(why_not.empty());
    }
}

// Random changes: whatever decode() accepts must be within the limits that Message has.
TEST(Message, DamagedPacketsAreRefusedOrHarmless) {
    std::mt19937 random(20240601);
    int accepted = 0;
    for (int round = 0; round < 100'000; ++round) {
        auto packet = encode(example(random() % 64));
        for (unsigned i = 0, changes = 1 + random() % 4; i < changes; ++i) {
            packet[random() % packet.size()] = static_cast<std::byte>(random());
        }
        if (random() % 4 == 0) {
            packet.resize(random() % (packet.size() + 64));
        }
        std::string why_not;
        const auto got = decode(packet, why_not);
        if (!got) {
            ASSERT_FALSE(why_not.empty());
            continue;
        }
        ++accepted;
        ASSERT_GE(got->size, 1);
        ASSERT_LE(got->size, kMaxRanks);
        ASSERT_GE(got->rank, 0);
        ASSERT_LT(got->rank, got->size);
        ASSERT_LE(got->name.size(), kMaxName);
        ASSERT_LE(got->payload.size(), packet.size());
        ASSERT_GE(got->deadline.end().time_since_epoch().count(), 0);
        ASSERT_NO_THROW(name_of(got->kind));
    }
    EXPECT_GT(accepted, 100);  // not every change was in the magic
}

TEST(Message, TooMuchIsNotSent) {
    EXPECT_THROW(encode(example(kMaxContribution + 1)), std::length_error);
    std::string why_not;
    EXPECT_FALSE(
        decode(std::vector<std::byte>(encode(example(0)).size() + kMaxContribution + 1), why_not));
}

}  // namespace
}  // namespace symm
