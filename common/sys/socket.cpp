#include "common/sys/socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace symm {
namespace {

[[noreturn]] void fail(const std::string& call) {
    throw std::system_error(errno, std::generic_category(), call);
}

// An address has room for 107 characters, a path may be longer. The directory is opened then and
// named by its descriptor, which has to stay open until bind or connect is done.
struct Address {
    sockaddr_un name{};
    UniqueFd directory;

    explicit Address(const std::filesystem::path& path) {
        name.sun_family = AF_UNIX;
        std::string text = path.string();
        if (text.size() >= sizeof(name.sun_path)) {
            directory =
                UniqueFd(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
            if (!directory) {
                fail("open(" + path.parent_path().string() + ")");
            }
            text =
                "/proc/self/fd/" + std::to_string(directory.get()) + "/" + path.filename().string();
        }
        if (text.size() >= sizeof(name.sun_path)) {
            errno = ENAMETOOLONG;
            fail("socket " + path.string());
        }
        std::memcpy(name.sun_path, text.c_str(), text.size() + 1);
    }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

UniqueFd new_socket() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        fail("socket(AF_UNIX, SOCK_SEQPACKET)");
    }
    return socket;
}

bool wait_for(int fd, short events, Deadline deadline) {
    while (true) {
        pollfd entry{fd, events, 0};
        const int ready = ::poll(&entry, 1, deadline.left_ms());
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            fail("poll");
        }
        if (ready <= 0 && deadline.passed()) {
            return false;
        }
    }
}

bool is_gone(int error) {
    return error == EPIPE || error == ECONNRESET || error == ENOTCONN;
}

void take_descriptors(msghdr& message, std::vector<UniqueFd>& into) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            into.emplace_back(fd);
        }
    }
}

}  // namespace

UniqueFd listen_at(const std::filesystem::path& path, int backlog) {
    const Address address(path);
    UniqueFd socket = new_socket();
    if (::bind(socket.get(), address.get(), sizeof(address.name)) != 0) {
        fail("bind(" + path.string() + ")");
    }
    if (::listen(socket.get(), backlog) != 0) {
        fail("listen(" + path.string() + ")");
    }
    return socket;
}

UniqueFd connect_to(const std::filesystem::path& path, Deadline deadline) {
    using namespace std::chrono_literals;
    for (auto pause = 500us; true; pause = std::min<std::chrono::microseconds>(pause * 2, 10ms)) {
        int error = 0;
        try {
            const Address address(path);
            UniqueFd socket = new_socket();
            if (::connect(socket.get(), address.get(), sizeof(address.name)) == 0) {
                return socket;
            }
            error = errno;
        } catch (const std::system_error& failure) {  // the directory is not there yet
            error = failure.code().value();
        }
        // Not there yet, there but not listening yet, or more waiting than the backlog holds.
        if (error != ENOENT && error != ECONNREFUSED && error != EAGAIN && error != EINTR) {
            errno = error;
            fail("connect(" + path.string() + ")");
        }
        if (deadline.passed()) {
            return {};
        }
        std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline.left()));
    }
}

UniqueFd accept_now(const UniqueFd& listener) {
    const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        fail("accept");
    }
    return UniqueFd(fd);
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
        fail("socketpair");
    }
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

ucred peer_credentials(int socket) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        fail("getsockopt(SO_PEERCRED)");
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
            errno = EINVAL;
            fail("send_packet(descriptors=" + std::to_string(descriptors.size()) + ")");
        }
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
    while (true) {
        if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            return Io::kDone;
        }
        if (is_gone(errno)) {
            return Io::kClosed;
        }
        if (errno == EAGAIN) {
            if (!wait_for(socket, POLLOUT, deadline)) {
                return Io::kLate;
            }
        } else if (errno != EINTR) {
            fail("sendmsg(bytes=" + std::to_string(bytes.size()) +
                 ", descriptors=" + std::to_string(descriptors.size()) + ")");
        }
    }
}

Io receive_packet(int socket, std::size_t most, Packet& packet, Deadline deadline) {
    packet = Packet{};
    packet.bytes.resize(most);
    iovec content{packet.bytes.data(), packet.bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPacketDescriptors * sizeof(int))> control{};
    bool was_reset = false;
    while (true) {
        msghdr message{};
        message.msg_iov = &content;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (length > 0) {
            take_descriptors(message, packet.descriptors);
            packet.bytes.resize(static_cast<std::size_t>(length));
            packet.cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
            if (packet.cut) {
                packet.descriptors.clear();
            }
            return Io::kDone;
        }
        if (length == 0) {
            return Io::kClosed;  // no packet here is empty
        }
        if (errno == ECONNRESET && !was_reset) {
            was_reset = true;  // told once, before what the peer had sent: that comes next
            continue;
        }
        if (is_gone(errno)) {
            return Io::kClosed;
        }
        if (errno == EAGAIN) {
            if (!wait_for(socket, POLLIN, deadline)) {
                return Io::kLate;
            }
        } else if (errno != EINTR) {
            fail("recvmsg");
        }
    }
}

Glance glance_at(int socket, std::size_t most) {
    Glance glance;
    pollfd entry{socket, POLLIN | POLLRDHUP, 0};
    if (::poll(&entry, 1, 0) > 0) {
        glance.closed = (entry.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
        glance.first.resize(most);
        const ssize_t length =
            ::recv(socket, glance.first.data(), glance.first.size(), MSG_PEEK | MSG_DONTWAIT);
        glance.first.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    }
    return glance;
}

std::vector<std::size_t> wait_readable(std::span<const int> descriptors, Deadline deadline) {
    std::vector<pollfd> entries;
    entries.reserve(descriptors.size());
    for (const int fd : descriptors) {
        entries.push_back({fd, POLLIN, 0});
    }
    std::vector<std::size_t> readable;
    while (readable.empty()) {
        const int ready = ::poll(entries.data(), entries.size(), deadline.left_ms());
        if (ready < 0 && errno != EINTR) {
            fail("poll");
        }
        for (std::size_t i = 0; ready > 0 && i < entries.size(); ++i) {
            if (entries[i].revents != 0) {
                readable.push_back(i);
            }
        }
        if (ready <= 0 && deadline.passed()) {
            break;
        }
    }
    return readable;
}

}  // namespace symm
