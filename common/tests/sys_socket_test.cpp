// Packets, descriptors and deadlines of UNIX sockets.

#include "common/sys/socket.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tests/patient.hpp"

namespace symm {
namespace {

using ::testing::Each;
using ::testing::Gt;
using testing::patient;

Deadline soon() {
    return Deadline::after(std::chrono::milliseconds(50));
}

std::vector<std::byte> bytes_of(std::size_t count, int seed) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
    }
    return bytes;
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(Socket, PacketsArriveWholeAndInOrder) {
    const auto [a, b] = socket_pair();
    for (const std::size_t count : {1, 7, 4096, 40000}) {
        ASSERT_EQ(send_packet(a.get(), bytes_of(count, 1), {}, patient()), Io::kDone);
        ASSERT_EQ(send_packet(a.get(), bytes_of(count, 2), {}, patient()), Io::kDone);
        SocketPacket packet;
        for (const int seed : {1, 2}) {
            ASSERT_EQ(receive_packet(b.get(), 50000, packet, patient()), Io::kDone);
            EXPECT_FALSE(packet.cut);
            EXPECT_EQ(packet.bytes, bytes_of(count, seed));
        }
    }
}

TEST(Socket, ALongPacketIsMarkedAsCut) {
    const auto [a, b] = socket_pair();
    std::vector<UniqueFd> file;
    file.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
    ASSERT_EQ(send_packet(a.get(), bytes_of(100, 1), file, patient()), Io::kDone);
    SocketPacket packet;
    ASSERT_EQ(receive_packet(b.get(), 99, packet, patient()), Io::kDone);
    EXPECT_TRUE(packet.cut);
    EXPECT_TRUE(packet.descriptors.empty());
}

// A program may have closed its standard streams, and still write to them.
TEST(Socket, HasTheNumberOfNoStandardStream) {
    const int kept = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
    ::close(STDIN_FILENO);
    std::vector<int> numbers;
    {
        const std::string name = fmt::format("symm-test-{}", ::getpid());
        const auto [a, b] = socket_pair();
        const UniqueFd listener = listen_at(name, 1);
        const UniqueFd there = connect_to(name, patient());
        const UniqueFd here = accept_now(listener);
        std::vector<UniqueFd> file;
        file.push_back(a.duplicate());
        EXPECT_EQ(send_packet(a.get(), bytes_of(1, 1), file, patient()), Io::kDone);
        SocketPacket packet;
        EXPECT_EQ(receive_packet(b.get(), 100, packet, patient()), Io::kDone);
        numbers = {a.get(),
                   b.get(),
                   listener.get(),
                   there.get(),
                   here.get(),
                   file[0].get(),
                   packet.descriptors.at(0).get()};
    }
    if (kept >= 0) {
        ::dup2(kept, STDIN_FILENO);
        ::close(kept);
    }
    EXPECT_THAT(numbers, Each(Gt(STDERR_FILENO)));
}

TEST(Socket, DescriptorsAreTheSameFilesAndCloseOnExec) {
    const auto [a, b] = socket_pair();
    std::vector<UniqueFd> files;
    for (int i = 0; i < 3; ++i) {
        files.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(files.back().get(), 100 + i), 0);
    }
    ASSERT_EQ(send_packet(a.get(), bytes_of(1, 1), files, patient()), Io::kDone);
    SocketPacket packet;
    ASSERT_EQ(receive_packet(b.get(), 10, packet, patient()), Io::kDone);
    ASSERT_EQ(packet.descriptors.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        struct stat file {};
        ASSERT_EQ(::fstat(packet.descriptors[i].get(), &file), 0);
        EXPECT_EQ(file.st_size, static_cast<off_t>(100 + i));
        EXPECT_NE(::fcntl(packet.descriptors[i].get(), F_GETFD) & FD_CLOEXEC, 0);
        EXPECT_NE(packet.descriptors[i].get(), files[i].get());
    }
}

TEST(Socket, DescriptorsBeyondTheProcesssLimitAreNoticedAndClosed) {
    const auto [a, b] = socket_pair();
    std::vector<UniqueFd> files;
    files.emplace_back(::memfd_create("symm-test", MFD_CLOEXEC));
    for (int i = 0; i < 9; ++i) {
        files.push_back(files[0].duplicate());
    }
    ASSERT_EQ(send_packet(a.get(), bytes_of(1, 1), files, patient()), Io::kDone);
    // Leaves room for a few descriptors, not for ten.
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest_free = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(lowest_free) + 4;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    SocketPacket packet;
    const Io io = receive_packet(b.get(), 10, packet, patient());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(io, Io::kDone);
    EXPECT_TRUE(packet.cut);
    EXPECT_TRUE(packet.descriptors.empty());
    EXPECT_FALSE(is_open(lowest_free));
}

TEST(Socket, WhatWasSentBeforeTheEndStillArrives) {
    for (const bool unread : {false, true}) {
        auto [a, b] = socket_pair();
        if (unread) {  // a closes with unread data: b gets ECONNRESET first
            ASSERT_EQ(send_packet(b.get(), bytes_of(5, 1), {}, patient()), Io::kDone);
        }
        ASSERT_EQ(send_packet(a.get(), bytes_of(9, 3), {}, patient()), Io::kDone);
        a.reset();
        SocketPacket packet;
        ASSERT_EQ(receive_packet(b.get(), 10, packet, patient()), Io::kDone) << unread;
        EXPECT_EQ(packet.bytes, bytes_of(9, 3));
        EXPECT_EQ(receive_packet(b.get(), 10, packet, patient()), Io::kClosed);
        EXPECT_EQ(send_packet(b.get(), bytes_of(1, 1), {}, patient()), Io::kClosed);
    }
}

std::string new_name(const char* purpose) {
    return "symm-test-" + std::to_string(::getpid()) + "-" + purpose;
}

TEST(Socket, EveryWaitEnds) {
    const auto [a, b] = socket_pair();
    SocketPacket packet;
    EXPECT_EQ(receive_packet(a.get(), 10, packet, soon()), Io::kLate);
    Io io = Io::kDone;
    for (int i = 0; i < 100000 && io == Io::kDone; ++i) {  // the peer never reads: the buffer fills
        io = send_packet(a.get(), bytes_of(10000, 1), {}, soon());
    }
    EXPECT_EQ(io, Io::kLate);
    EXPECT_FALSE(connect_to(new_name("nobody"), soon()));
    const int watched[] = {-1, a.get()};
    EXPECT_TRUE(wait_readable(watched, soon()).empty());
    EXPECT_FALSE(accept_now(listen_at(new_name("here"), 1)));
}

TEST(Socket, KnowsThePeer) {
    const std::string name = new_name("peer");
    UniqueFd listener = listen_at(name, 4);
    const UniqueFd client = connect_to(name, patient());
    const int watched[] = {listener.get()};
    ASSERT_EQ(wait_readable(watched, patient()), std::vector<std::size_t>{0});
    const UniqueFd server = accept_now(listener);
    ASSERT_TRUE(server);
    for (const UniqueFd* end : {&client, &server}) {
        const ucred peer = peer_credentials(end->get());
        EXPECT_EQ(peer.pid, ::getpid());
        EXPECT_EQ(peer.uid, ::geteuid());
    }
    EXPECT_THROW(static_cast<void>(listen_at(name, 1)), std::system_error);
    listener.reset();
    EXPECT_TRUE(listen_at(name, 1));  // the name is free once the socket is closed
    EXPECT_THROW(static_cast<void>(listen_at("", 1)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(listen_at(std::string(108, 'n'), 1)), std::invalid_argument);
}

TEST(UniqueFd, ClosesOnceAndDuplicates) {
    UniqueFd first(::memfd_create("symm-test", MFD_CLOEXEC));
    UniqueFd second = first.duplicate();
    EXPECT_NE(first.get(), second.get());
    const int number = first.get();
    UniqueFd third = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_TRUE(is_open(number));
    third.reset();
    EXPECT_FALSE(is_open(number));
    EXPECT_TRUE(is_open(second.get()));
    EXPECT_THROW(static_cast<void>(UniqueFd().duplicate()), std::system_error);
    const int released = second.release();
    EXPECT_FALSE(second);
    EXPECT_TRUE(is_open(released));
    ::close(released);
}

}  // namespace
}  // namespace symm
