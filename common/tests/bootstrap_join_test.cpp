// How ranks that a launcher started join, and which processes the root refuses.

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <future>

#include "common/bootstrap/message.hpp"
#include "common/sys/socket.hpp"
#include "common/tests/meet.hpp"
#include "common/tests/needs.hpp"
#include "common/tests/text_thrown_by.hpp"

namespace symm {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A name that no other test or process has.
std::string new_name() {
    static int number = 0;
    return fmt::format("symm-test-{}-{}", ::getpid(), ++number);
}

Message hello(int rank, int size) {
    return {.kind = MessageKind::kHello, .rank = rank, .size = size, .deadline = patient()};
}

// The error of join(), or of one call after it; empty if neither throws.
std::string error_of_rank(int rank, int size, const std::string& name, Deadline deadline) {
    return text_thrown_by([&] {
        const auto bootstrap = join(rank, size, name, deadline);
        bootstrap->allgather("value", rank, patient());
    });
}
std::future<std::string> start_rank(int rank, int size, const std::string& name,
                                    Deadline deadline = patient()) {
    return std::async(std::launch::async,
                      [=] { return error_of_rank(rank, size, name, deadline); });
}

// Expects that two ranks join, the second only after `stranger` has done something to the root.
void expect_joined_after(const std::function<void(const std::string& name)>& stranger) {
    const std::string name = new_name();
    auto root = start_rank(0, 2, name);
    stranger(name);
    EXPECT_EQ(error_of_rank(1, 2, name, patient()), "");
    EXPECT_EQ(root.get(), "");
}

// The text in the next packet of a connection, if the packet is of this kind.
std::string text_from(const UniqueFd& socket, MessageKind kind) {
    SocketPacket packet;
    EXPECT_EQ(receive_packet(socket.get(), kMaxMessage, packet, patient()), Io::kDone);
    std::string why_not;
    const auto message = decode(packet.bytes, why_not);
    return message && message->kind == kind ? as_text(message->payload) : "another packet";
}

// Sends the root a first message, and returns why the root refuses the connection.
std::string refusal_of(const std::string& name, std::span<const std::byte> bytes,
                       std::span<const UniqueFd> descriptors = {}) {
    const UniqueFd socket = connect_to(name, patient());
    EXPECT_EQ(send_packet(socket.get(), bytes, descriptors, patient()), Io::kDone);
    const std::string refusal = text_from(socket, MessageKind::kRefused);
    SocketPacket packet;
    EXPECT_EQ(receive_packet(socket.get(), kMaxMessage, packet, patient()), Io::kClosed);
    return refusal;
}

void expect_refused(std::span<const std::byte> first, const std::string& why,
                    std::span<const UniqueFd> descriptors = {}) {
    expect_joined_after([&](const std::string& name) {
        EXPECT_THAT(refusal_of(name, first, descriptors), HasSubstr(why));
    });
}

TEST(Join, AFirstMessageThatIsNoHelloOfThisRunIsRefusedAndTheRanksCarryOn) {
    const std::string text = "GET / HTTP/1.1\r\nHost: " + std::string(100, 'x') + "\r\n\r\n";
    expect_refused(std::as_bytes(std::span(text)), "speaks another protocol");
    const auto packet = encode(hello(1, 2));
    expect_refused(std::span(packet).first(packet.size() - 1), "too short");
    auto changed = packet;
    changed[7] = std::byte{'9'};
    expect_refused(changed, "another version");
    changed = packet;
    changed.resize(kMaxMessage + 1);
    expect_refused(changed, "is longer than");
    expect_refused(encode(hello(2, 3)), "rank 2 of 3");
    expect_refused(encode(hello(0, 2)), "already a rank 0");
    Message message = hello(1, 2);
    message.kind = MessageKind::kBarrier;
    expect_refused(encode(message), "not a HELLO");
    message = hello(1, 2);
    message.deadline = Deadline::after({});
    expect_refused(encode(message), "its deadline has passed");
}

TEST(Join, DescriptorsOfAStrangerAreClosed) {
    const int before = open_descriptors();
    {
        std::vector<UniqueFd> files;
        for (int i = 0; i < 5; ++i) {
            files.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
        }
        expect_refused(encode(hello(1, 2)), "not a HELLO", files);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Join, AConnectionThatClosesAtOnceIsForgotten) {
    expect_joined_after([](const std::string& name) { connect_to(name, patient()).reset(); });
}

TEST(Join, ASilentConnectionIsRefused) {
    expect_joined_after([](const std::string& name) {
        const UniqueFd silent = connect_to(name, patient());
        EXPECT_THAT(text_from(silent, MessageKind::kRefused), HasSubstr("it sent nothing"));
    });
}

constexpr uid_t kNobody = 65534;

TEST(Join, AnotherUsersProcessIsRefused) {
    SYMM_NEEDS(::geteuid() == 0);  // only root can become another user
    expect_joined_after([&](const std::string& name) {
        std::jthread([&] {
            // The system call changes this thread only; glibc's function would change all.
            ASSERT_EQ(::syscall(SYS_setresuid, -1, kNobody, -1), 0);
            const UniqueFd socket = connect_to(name, patient());
            EXPECT_THAT(text_from(socket, MessageKind::kRefused),
                        HasSubstr("belongs to user 65534"));
        }).join();
        ::prctl(PR_SET_DUMPABLE, 1);  // the change of user cleared it; leak checkers need it
    });
}

TEST(Join, AnotherUserCannotPassForRankZero) {
    SYMM_NEEDS(::geteuid() == 0);  // only root can become another user
    const std::string name = new_name();
    std::jthread([&] {
        ASSERT_EQ(::syscall(SYS_setresuid, -1, kNobody, -1), 0);
        const UniqueFd listener = listen_at(name, 8);
        std::jthread([&] {
            EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
            EXPECT_THAT(error_of_rank(1, 2, name, patient()),
                        AllOf(HasSubstr("of user 65534"), HasSubstr("SYMM_BOOTSTRAP")));
        }).join();
    }).join();
    ::prctl(PR_SET_DUMPABLE, 1);
}

TEST(Join, ARankThatNeverComesIsNamedToAll) {
    const std::string name = new_name();
    auto rank_1 = start_rank(1, 4, name);
    EXPECT_THAT(
        error_of_rank(0, 4, name, Deadline::after(std::chrono::seconds(2))),
        AllOf(HasSubstr("2, 3 of 4 did not join within 2 s"), HasSubstr("network namespace")));
    EXPECT_THAT(rank_1.get(), HasSubstr("did not join within 2 s"));
}

TEST(Join, ARankWithoutARootGivesUp) {
    EXPECT_THAT(error_of_rank(1, 2, new_name(), soon()),
                AllOf(HasSubstr("no word from rank 0 within 0.3 s"), HasSubstr("SYMM_BOOTSTRAP"),
                      HasSubstr("network namespace")));
}

TEST(Join, ARankThatIsLostMeanwhileIsNamed) {
    const std::string name = new_name();
    auto rank_0 = start_rank(0, 4, name);
    const auto come = [&](int rank) {
        UniqueFd socket = connect_to(name, patient());
        EXPECT_EQ(send_packet(socket.get(), encode(hello(rank, 4)), {}, patient()), Io::kDone);
        return socket;
    };
    const UniqueFd rank_1 = come(1);
    come(2).reset();
    EXPECT_THAT(rank_0.get(), HasSubstr("rank 2 (pid"));
    EXPECT_THAT(text_from(rank_1, MessageKind::kFail), HasSubstr("rank 2 (pid"));
}

// A child that outlives the run would keep the name in use.
TEST(Join, AChildForkedMeanwhileDoesNotKeepTheName) {
    const std::string name = new_name();
    auto root = start_rank(0, 2, name, soon());
    static_cast<void>(connect_to(name, patient()));  // now it listens
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        ::pause();
        ::_exit(0);
    }
    EXPECT_THAT(root.get(), HasSubstr("rank 1 of 2 did not join"));
    EXPECT_EQ(error_of_rank(0, 1, name, patient()), "");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace symm
