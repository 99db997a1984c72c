#include "labs/04_shm_transport/tcp_unpacker.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <system_error>

#include "common/simt/back_off.hpp"
#include "common/sys/deadline.hpp"

namespace symm {
namespace {

struct Header {
    std::uint64_t destination;
    std::uint64_t length;
};

// How soon the thread notices that it is to end.
constexpr timeval kLookEvery{.tv_sec = 0, .tv_usec = 20'000};

void send_all(int socket, std::span<const std::byte> data) {
    const Deadline deadline = Deadline::standard();
    while (!data.empty()) {
        pollfd writable{socket, POLLOUT, 0};
        if (::poll(&writable, 1, deadline.left_ms()) == 0) {
            throw std::runtime_error(
                fmt::format("the receiver took nothing for {:.3g} s", deadline.seconds()));
        }
        const ssize_t sent = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "send() over TCP");
        }
        data = data.subspan(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
}

}  // namespace

std::pair<UniqueFd, UniqueFd> loopback_tcp_pair() {
    const auto checked = [](int result, const char* call) {
        if (result < 0) {
            throw std::system_error(errno, std::generic_category(), call);
        }
        return result;
    };
    const auto new_socket = [&] {
        return UniqueFd(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket()"));
    };
    const UniqueFd listener = new_socket();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    checked(::bind(listener.get(), generic, length), "bind() to the loopback");
    checked(::listen(listener.get(), 1), "listen()");
    checked(::getsockname(listener.get(), generic, &length), "getsockname()");
    UniqueFd client = new_socket();
    checked(::connect(client.get(), generic, length), "connect() to the loopback");
    return {
        std::move(client),
        UniqueFd(checked(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept()"))};
}

void send_piece(const UniqueFd& socket, std::uint64_t destination,
                std::span<const std::byte> data) {
    const Header header{destination, data.size()};
    send_all(socket.get(), std::as_bytes(std::span(&header, 1)));
    send_all(socket.get(), data);
}

TcpUnpacker::TcpUnpacker(UniqueFd socket, int rank, int peer, std::size_t page_bytes,
                         std::chrono::nanoseconds limit)
    : socket_(std::move(socket)),
      rank_(rank),
      peer_(peer),
      page_bytes_(page_bytes),
      queue_(pinned_calloc(sizeof(UnpackQueue))),
      bounce_(pinned_calloc(kUnpackDepth * page_bytes)),
      timeout_(limit),
      thread_([this](const ServiceThread& thread) { run(thread); }, [this] { timeout_.abort(); }) {}

// Waits for data, and receives what there is. 0 where the sender has closed the connection, or the
// unpacker is destroyed.
std::size_t TcpUnpacker::receive_some(const ServiceThread& thread, std::byte* to,
                                      std::size_t most) {
    while (!thread.stopping()) {
        const ssize_t received = ::recv(socket_.get(), to, most, 0);
        if (received >= 0) {
            return static_cast<std::size_t>(received);
        }
        if (errno != EAGAIN && errno != EINTR) {  // EAGAIN: kLookEvery has passed
            throw std::system_error(errno, std::generic_category(), "recv() over TCP");
        }
    }
    return 0;
}

// False where the connection ends before the first byte, or the thread is to end.
bool TcpUnpacker::receive_all(const ServiceThread& thread, std::byte* to, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t received = receive_some(thread, to + done, bytes - done);
        if (received == 0 && done > 0 && !thread.stopping()) {
            throw std::runtime_error(
                fmt::format("rank {} closed its TCP connection within a header", peer_));
        }
        if (received == 0) {
            return false;
        }
        done += received;
    }
    return true;
}

void TcpUnpacker::run(const ServiceThread& thread) {
    // A wait with a limit inside recv(): one system call per piece, not two.
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLookEvery, sizeof(kLookEvery)) !=
        0) {
        throw std::system_error(errno, std::generic_category(), "setsockopt(SO_RCVTIMEO)");
    }
    auto* queue = queue_.as<UnpackQueue>();
    std::uint64_t next = 0;  // the next descriptor
    Header header{};
    while (receive_all(thread, reinterpret_cast<std::byte*>(&header), sizeof(header))) {
        while (header.length > 0) {
            // Acquire: the kernel has read the page before it is received into again.
            for (int round = 0;
                 next - simt::load(&queue->head, simt::Order::kAcquire) >= kUnpackDepth; ++round) {
                if (thread.stopping()) {
                    return;
                }
                simt::back_off(round);
            }
            const std::size_t page = next % kUnpackDepth * page_bytes_;
            const std::size_t received =
                receive_some(thread, bounce_.as<std::byte>() + page,
                             std::min<std::uint64_t>(page_bytes_, header.length));
            if (received == 0) {
                if (thread.stopping()) {
                    return;
                }
                throw std::runtime_error(
                    fmt::format("rank {} closed its TCP connection {} bytes before the end of a "
                                "piece",
                                peer_, header.length));
            }
            queue->descriptors[next % kUnpackDepth] = {page, received, header.destination};
            // Release: the descriptor and the page come first.
            simt::store(&queue->tail, ++next, simt::Order::kRelease);
            posted_.fetch_add(received, std::memory_order_relaxed);
            header.length -= received;
            header.destination += received;
        }
    }
    closed_.store(true, std::memory_order_release);
}

void TcpUnpacker::receive(CUdeviceptr user, std::size_t user_bytes, std::size_t bytes,
                          CUstream stream) {
    launch_unpack(stream, {queue_.as<UnpackQueue>(), bounce_.as<std::byte>(), bounce_.size(),
                           reinterpret_cast<std::byte*>(user), user_bytes, bytes,
                           timeout_.timeout(), rank_, peer_});
    asked_ += bytes;
}

void TcpUnpacker::finish(const Stream& stream) {
    try {
        timeout_.synchronize(stream, "the unpacking of TCP data", [this] {
            if (closed_.load(std::memory_order_acquire) &&
                posted_.load(std::memory_order_relaxed) < asked_) {
                throw std::runtime_error(fmt::format(
                    "rank {} closed its TCP connection {} bytes before the end of a message", peer_,
                    asked_ - posted_.load(std::memory_order_relaxed)));
            }
        });
    } catch (const std::exception&) {
        if (const std::string why = thread_.failure(); !why.empty()) {
            throw std::runtime_error(why);
        }
        throw;
    }
}

}  // namespace symm
