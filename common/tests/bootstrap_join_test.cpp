// How ranks meet, and whom they do not let in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <latch>

#include "common/bootstrap/message.hpp"
#include "common/sys/socket.hpp"
#include "common/tests/meet.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kRun = 7;

Message hello(int rank, int size) {
    Message message;
    message.kind = MessageKind::kHello;
    message.rank = rank;
    message.size = size;
    message.run = kRun;
    message.left_ns = 60'000'000'000;
    return message;
}

// Two ranks, of which the second comes only after `stranger` has done what it does at the hub's
// door.
struct Outcome {
    std::vector<std::string> refusals;
    std::string error_of_0, error_of_1;
};
Outcome meet_after(const std::function<void(const std::filesystem::path& hub)>& stranger) {
    const PrivateDirectory directory("symm-test-");
    Outcome outcome;
    std::jthread rank_0([&] {
        try {
            Bootstrap meeting = Bootstrap::join({0, 2, directory.path(), kRun}, patient());
            outcome.refusals = meeting.refusals();
            EXPECT_EQ(meeting.allgather("value", 10, patient())[1], 11);
        } catch (const std::exception& error) {
            outcome.error_of_0 = error.what();
        }
    });
    stranger(directory.path() / "hub");
    try {
        Bootstrap meeting = Bootstrap::join({1, 2, directory.path(), kRun}, patient());
        EXPECT_EQ(meeting.allgather("value", 11, patient())[0], 10);
    } catch (const std::exception& error) {
        outcome.error_of_1 = error.what();
    }
    rank_0.join();
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "hub"));
    return outcome;
}

// Sends bytes as a first message and waits for the answer, which must be a refusal.
void say(const std::filesystem::path& hub, std::span<const std::byte> bytes,
         std::span<const UniqueFd> descriptors = {}) {
    const UniqueFd socket = connect_to(hub, patient());
    ASSERT_EQ(send_packet(socket.get(), bytes, descriptors, patient()), Io::kDone);
    Packet packet;
    ASSERT_EQ(receive_packet(socket.get(), kMaxMessage, packet, patient()), Io::kDone);
    std::string why_not;
    const auto answer = decode(packet.bytes, why_not);
    ASSERT_TRUE(answer) << why_not;
    EXPECT_EQ(answer->kind, MessageKind::kRefused);
    EXPECT_EQ(receive_packet(socket.get(), kMaxMessage, packet, patient()), Io::kClosed);
}

void expect_refused(const Outcome& outcome, const std::string& why) {
    EXPECT_THAT(outcome.error_of_0, IsEmpty());
    EXPECT_THAT(outcome.error_of_1, IsEmpty());
    EXPECT_THAT(outcome.refusals, Contains(HasSubstr(why)));
}

TEST(Meeting, AStrangerIsRefusedAndTheRanksCarryOn) {
    const std::string text = "GET / HTTP/1.1\r\nHost: " + std::string(100, 'x') + "\r\n\r\n";
    expect_refused(meet_after([&](const auto& hub) { say(hub, std::as_bytes(std::span(text))); }),
                   "does not speak this protocol");
}

TEST(Meeting, ATruncatedMessageIsRefused) {
    const auto packet = encode(hello(1, 2));
    expect_refused(
        meet_after([&](const auto& hub) { say(hub, std::span(packet).first(packet.size() - 1)); }),
        "too short");
}

TEST(Meeting, AnOversizedMessageIsRefused) {
    auto packet = encode(hello(1, 2));
    packet.resize(kMaxMessage + 1);
    expect_refused(meet_after([&](const auto& hub) { say(hub, packet); }), "is longer than");
}

TEST(Meeting, AMessageThatLiesAboutItsLengthIsRefused) {
    auto packet = encode(hello(1, 2));
    packet.resize(packet.size() + 5);
    expect_refused(meet_after([&](const auto& hub) { say(hub, packet); }),
                   "announces 0 bytes and brings 5");
}

TEST(Meeting, AnotherVersionIsRefused) {
    auto packet = encode(hello(1, 2));
    const std::uint16_t version = kMessageVersion + 1;
    std::memcpy(packet.data() + 4, &version, sizeof(version));
    expect_refused(meet_after([&](const auto& hub) { say(hub, packet); }),
                   "speaks version 2, not 1");
}

TEST(Meeting, AnotherRunIsRefused) {
    Message message = hello(1, 2);
    message.run = kRun + 1;
    expect_refused(meet_after([&](const auto& hub) { say(hub, encode(message)); }), "another run");
}

TEST(Meeting, AnotherNumberOfRanksIsRefused) {
    expect_refused(meet_after([&](const auto& hub) { say(hub, encode(hello(2, 3))); }),
                   "rank 2 of 3");
}

TEST(Meeting, ASecondRankZeroIsRefused) {
    expect_refused(meet_after([&](const auto& hub) { say(hub, encode(hello(0, 2))); }),
                   "a rank 0 already");
}

TEST(Meeting, AFirstMessageThatIsNoHelloIsRefused) {
    Message message = hello(1, 2);
    message.kind = MessageKind::kBarrier;
    expect_refused(meet_after([&](const auto& hub) { say(hub, encode(message)); }), "no hello");
}

TEST(Meeting, DescriptorsOfAStrangerAreClosed) {
    const int before = open_descriptors();
    expect_refused(meet_after([&](const auto& hub) {
                       std::vector<UniqueFd> files;
                       for (int i = 0; i < 5; ++i) {
                           files.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
                       }
                       say(hub, encode(hello(1, 2)), files);
                   }),
                   "no hello");
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Meeting, AConnectionWithoutAWordHoldsNobodyUp) {
    UniqueFd silent;
    const auto outcome = meet_after([&](const auto& hub) { silent = connect_to(hub, patient()); });
    EXPECT_THAT(outcome.error_of_0, IsEmpty());
    EXPECT_THAT(outcome.error_of_1, IsEmpty());
}

TEST(Meeting, AConnectionThatClosesAtOnceIsForgotten) {
    expect_refused(meet_after([&](const auto& hub) { connect_to(hub, patient()).reset(); }),
                   "closed the connection");
}

TEST(Meeting, AnotherUsersProcessIsRefused) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root can become another user";
    }
    constexpr uid_t kNobody = 65534;
    bool reached = true;
    const Outcome outcome = meet_after([&](const auto& hub) {
        // Let the other user in as far as the socket, which a private directory does not.
        ASSERT_TRUE(connect_to(hub, patient()));
        ::chmod(hub.parent_path().c_str(), 0755);
        ::chmod(hub.c_str(), 0777);
        std::jthread([&] {
            // The system call, not the function: this changes one thread only.
            ASSERT_EQ(::syscall(SYS_setresuid, -1, kNobody, -1), 0);
            try {
                const UniqueFd socket = connect_to(hub, patient());
                Packet packet;
                EXPECT_EQ(receive_packet(socket.get(), kMaxMessage, packet, patient()), Io::kDone);
            } catch (const std::system_error&) {
                reached = false;  // the temporary directory itself is closed to others
            }
        });
        ::prctl(PR_SET_DUMPABLE, 1);  // lost with the change of user; leak checkers need it
    });
    if (!reached) {
        GTEST_SKIP() << "no other user can reach the temporary directory";
    }
    expect_refused(outcome, "belongs to user 65534");
}

TEST(Meeting, ARankThatNeverComesIsNamed) {
    const PrivateDirectory directory("symm-test-");
    std::string error_of_1;
    std::jthread rank_1([&] {
        try {
            Bootstrap::join({1, 4, directory.path(), kRun}, patient());
        } catch (const BootstrapError& error) {
            error_of_1 = error.what();
        }
    });
    try {
        Bootstrap::join({0, 4, directory.path(), kRun}, Deadline::after(std::chrono::seconds(2)));
        FAIL() << "they cannot have met";
    } catch (const BootstrapError& error) {
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr("2, 3"), HasSubstr("of 4 did not come within 2 s")));
    }
    rank_1.join();
    // Rank 1 has come in time and been told, or has come too late and found nobody.
    EXPECT_THAT(error_of_1, HasSubstr("did not come within 2 s"));
}

TEST(Meeting, ARankWithoutAHubGivesUp) {
    const PrivateDirectory directory("symm-test-");
    try {
        Bootstrap::join({1, 2, directory.path(), kRun}, soon());
        FAIL() << "they cannot have met";
    } catch (const BootstrapError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no word from rank 0 within 0.3 s"));
        EXPECT_EQ(error.culprit(), 0);
    }
}

TEST(Meeting, ARankThatIsLostWhileTheyMeetIsNamed) {
    const PrivateDirectory directory("symm-test-");
    std::string error_of_0, error_of_1;
    std::jthread rank_0([&] {
        try {
            Bootstrap::join({0, 4, directory.path(), kRun}, patient());
        } catch (const BootstrapError& error) {
            error_of_0 = error.what();
        }
    });
    std::jthread rank_1([&] {
        try {
            Bootstrap::join({1, 4, directory.path(), kRun}, patient());
        } catch (const BootstrapError& error) {
            error_of_1 = error.what();
        }
    });
    {
        const UniqueFd rank_2 = connect_to(directory.path() / "hub", patient());
        ASSERT_EQ(send_packet(rank_2.get(), encode(hello(2, 4)), {}, patient()), Io::kDone);
    }
    rank_0.join();
    rank_1.join();
    // The hub may have seen the end of rank 2 together with its hello: then it is missing, not
    // lost.
    EXPECT_THAT(error_of_0, HasSubstr("rank 2 (pid"));
    EXPECT_THAT(error_of_1, HasSubstr("rank 2 (pid"));
}

TEST(Meeting, WhatAKilledRunHasLeftIsNoObstacle) {
    const PrivateDirectory directory("symm-test-");
    listen_at(directory.path() / "hub", 1).reset();  // closed, and the file still there
    ASSERT_TRUE(std::filesystem::exists(directory.path() / "hub"));
    std::jthread rank_1([&] { Bootstrap::join({1, 2, directory.path(), kRun}, patient()); });
    EXPECT_EQ(Bootstrap::join({0, 2, directory.path(), kRun}, patient()).size(), 2);
}

TEST(Meeting, TwoRunsDoNotMixInOneDirectory) {
    const PrivateDirectory directory("symm-test-");
    const UniqueFd other = listen_at(directory.path() / "hub", 8);
    EXPECT_THAT(
        [&] {
            Bootstrap::join({0, 2, directory.path(), kRun}, patient());
        },
        ::testing::ThrowsMessage<BootstrapError>(HasSubstr("another run is meeting")));
}

TEST(Meeting, ALongPathIsNoObstacle) {
    const PrivateDirectory directory("symm-test-");
    const auto deep = directory.path() / std::string(120, 'd') / std::string(120, 'e');
    std::filesystem::create_directories(deep);
    std::jthread rank_1([&] { Bootstrap::join({1, 2, deep, kRun}, patient()); });
    EXPECT_EQ(Bootstrap::join({0, 2, deep, kRun}, patient()).size(), 2);
}

}  // namespace
}  // namespace symm
