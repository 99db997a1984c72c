#include "common/sys/socket.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/sys/refuse_unless.hpp"
#include "common/sys/system_error.hpp"

namespace symm {
namespace {

// In the abstract namespace: the first byte of the path is zero, and there is no file.
struct Address {
    sockaddr_un name{};
    socklen_t size = 0;

    explicit Address(std::string_view text) {
        name.sun_family = AF_UNIX;
        refuse_unless(!text.empty() && text.size() < sizeof(name.sun_path),
                      "'{}' cannot name a socket: a name has 1 to {} characters", text,
                      sizeof(name.sun_path) - 1);
        std::memcpy(name.sun_path + 1, text.data(), text.size());
        size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

UniqueFd new_socket() {
    UniqueFd socket = beside_standard_streams(
        UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!socket) {
        throw_errno("socket(AF_UNIX, SOCK_SEQPACKET)");
    }
    return socket;
}

// Whether one of the entries was ready before the deadline.
bool poll_until(std::span<pollfd> entries, Deadline deadline) {
    while (true) {
        const int ready = ::poll(entries.data(), entries.size(), deadline.left_ms());
        if (ready < 0 && errno != EINTR) {
            throw_errno("poll");
        }
        if (ready > 0 || deadline.passed()) {
            return ready > 0;
        }
    }
}

// Makes a call of a socket that does not block until it succeeds: returns something else than -1.
template <class Call>
Io make_call(const Call& call, int socket, short events, Deadline deadline,
             const std::string& name) {
    while (call() < 0) {
        if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
            return Io::kClosed;
        }
        if (errno == EAGAIN) {
            pollfd entry{socket, events, 0};
            if (!poll_until({&entry, 1}, deadline)) {
                return Io::kLate;
            }
        } else if (errno != EINTR) {
            throw_system_error(errno, name);
        }
    }
    return Io::kDone;
}

void take_descriptors(msghdr& message, std::vector<UniqueFd>& into) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        const bool has_some = part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS;
        const std::size_t count = has_some ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            into.push_back(beside_standard_streams(UniqueFd(fd)));
        }
    }
}

}  // namespace

UniqueFd listen_at(std::string_view name, int backlog) {
    const Address address(name);
    UniqueFd socket = new_socket();
    if (::bind(socket.get(), address.get(), address.size) != 0) {
        throw_errno("bind({})", name);
    }
    if (::listen(socket.get(), backlog) != 0) {
        throw_errno("listen({})", name);
    }
    return socket;
}

UniqueFd connect_to(std::string_view name, Deadline deadline) {
    using namespace std::chrono_literals;
    const Address address(name);
    for (auto pause = 500us; true; pause = std::min<std::chrono::microseconds>(pause * 2, 10ms)) {
        UniqueFd socket = new_socket();
        if (::connect(socket.get(), address.get(), address.size) == 0) {
            return socket;
        }
        // No socket listens yet, or more connections wait than the backlog holds.
        if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) {
            throw_errno("connect({})", name);
        }
        if (deadline.passed()) {
            return {};
        }
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline.left()));
    }
}

UniqueFd accept_now(const UniqueFd& listener) {
    UniqueFd socket = beside_standard_streams(
        UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (!socket && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        throw_errno("accept");
    }
    return socket;
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
        throw_errno("socketpair");
    }
    UniqueFd first(ends[0]), second(ends[1]);
    first = beside_standard_streams(std::move(first));
    second = beside_standard_streams(std::move(second));
    if (!first || !second) {
        throw_errno("fcntl(F_DUPFD_CLOEXEC) of a socket pair");
    }
    return {std::move(first), std::move(second)};
}

ucred peer_credentials(int socket) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        throw_errno("getsockopt(SO_PEERCRED)");
    }
    return peer;
}

Io send_packet(int socket, std::span<const std::byte> bytes, std::span<const UniqueFd> descriptors,
               Deadline deadline) {
    iovec content{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))> control{};
    if (!descriptors.empty()) {
        if (descriptors.size() > kMaxPacketDescriptors) {
            throw std::length_error(
                fmt::format("{} descriptors in one packet: at most {} are possible",
                            descriptors.size(), kMaxPacketDescriptors));
        }
        // The kernel copies the descriptors into the receiver's table: how lab 03 sends memory to
        // another process (labs/03_ipc/memory_handle.hpp).
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr* part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        for (std::size_t i = 0; i < descriptors.size(); ++i) {
            const int fd = descriptors[i].get();
            std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
        }
    }
    const auto send = [&] { return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); };
    return make_call(
        send, socket, POLLOUT, deadline,
        fmt::format("sendmsg(bytes={}, descriptors={})", bytes.size(), descriptors.size()));
}

Io receive_packet(int socket, std::size_t most, SocketPacket& packet, Deadline deadline) {
    packet = SocketPacket{};
    packet.bytes.resize(most);
    iovec content{packet.bytes.data(), packet.bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))> control{};
    msghdr message{};
    ssize_t length = 0;
    const auto receive = [&] {
        message = msghdr{};
        message.msg_iov = &content;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        return length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    };
    const auto receive_after_reset = [&] {
        // ECONNRESET is reported once; what the peer sent before can still be received.
        return receive() < 0 && errno == ECONNRESET ? receive() : length;
    };
    const Io io = make_call(receive_after_reset, socket, POLLIN, deadline, "recvmsg");
    if (io != Io::kDone || length == 0) {  // packets here are never empty
        return io == Io::kDone ? Io::kClosed : io;
    }
    take_descriptors(message, packet.descriptors);
    packet.bytes.resize(static_cast<std::size_t>(length));
    packet.cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    if (packet.cut) {
        packet.descriptors.clear();
    }
    return Io::kDone;
}

Peek peek_at(int socket, std::size_t most) {
    Peek peek;
    pollfd entry{socket, POLLIN | POLLRDHUP, 0};
    if (::poll(&entry, 1, 0) > 0) {
        peek.closed = (entry.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
        peek.first.resize(most);
        const ssize_t length =
            ::recv(socket, peek.first.data(), peek.first.size(), MSG_PEEK | MSG_DONTWAIT);
        peek.first.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    }
    return peek;
}

std::vector<std::size_t> wait_readable(std::span<const int> descriptors, Deadline deadline) {
    std::vector<pollfd> entries;
    for (const int fd : descriptors) {
        entries.push_back({fd, POLLIN, 0});
    }
    poll_until(entries, deadline);
    std::vector<std::size_t> readable;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].revents != 0) {
            readable.push_back(i);
        }
    }
    return readable;
}

}  // namespace symm
