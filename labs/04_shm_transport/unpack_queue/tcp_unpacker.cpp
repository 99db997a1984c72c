#include "labs/04_shm_transport/unpack_queue/tcp_unpacker.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "common/cuda/addresses.hpp"
#include "common/simt/back_off.hpp"
#include "common/sys/deadline.hpp"
#include "common/sys/system_error.hpp"

namespace symm {
namespace {

constexpr std::uint64_t kUnit = 16;  // pieces are padded to whole units

// How often the thread checks whether it must end.
constexpr timeval kLookEvery{.tv_sec = 0, .tv_usec = 20'000};

// One system call if the socket takes all at once.
void send_all(int socket, std::span<iovec> parts) {
    const Deadline deadline = Deadline::standard();
    for (;;) {
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t result = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (result < 0 && errno != EAGAIN && errno != EINTR) {
            throw_errno("sendmsg() over TCP");
        }
        auto sent = static_cast<std::size_t>(std::max<ssize_t>(result, 0));
        for (; !parts.empty() && sent >= parts.front().iov_len; parts = parts.subspan(1)) {
            sent -= parts.front().iov_len;
        }
        if (parts.empty()) {
            return;
        }
        parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + sent;
        parts.front().iov_len -= sent;
        pollfd writable{socket, POLLOUT, 0};
        if (::poll(&writable, 1, deadline.left_ms()) == 0) {
            throw std::runtime_error(
                fmt::format("the receiver took nothing for {:.3g} s", deadline.seconds()));
        }
    }
}

// Polls until `done()`. Returns false if the thread must end.
template <class Done>
bool wait(const std::stop_token& stop, const Done& done) {
    for (int round = 0; !done(); ++round) {
        if (stop.stop_requested()) {
            return false;
        }
        simt::back_off(round);
    }
    return true;
}

}  // namespace

std::pair<UniqueFd, UniqueFd> loopback_tcp_pair() {
    const auto checked = [](int result, const char* call) {
        if (result < 0) {
            throw_errno("{}", call);
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
    PieceHeader header{destination, data.size()};
    std::byte padding[kUnit]{};
    iovec parts[] = {{&header, sizeof(header)},
                     {padding, destination % kUnit},
                     {const_cast<std::byte*>(data.data()), data.size()},
                     {padding, (0 - destination - data.size()) % kUnit}};
    send_all(socket.get(), parts);
}

TcpUnpacker::TcpUnpacker(UniqueFd socket, int rank, int peer, std::size_t bounce_bytes,
                         std::chrono::nanoseconds limit)
    : socket_(std::move(socket)),
      rank_(rank),
      peer_(peer),
      queue_(pinned_calloc(sizeof(UnpackQueue))),
      bounce_(pinned_calloc(bounce_bytes)),
      timeout_(limit),
      thread_([this](const std::stop_token& stop) { run(stop); }, [this] { timeout_.abort(); }) {}

// Every block has read all descriptors before this one.
std::uint64_t TcpUnpacker::read_by_all() const {
    std::uint64_t least = next_;
    for (const std::uint64_t& head : queue_.as<UnpackQueue>()->heads) {
        // Acquire: the block has read the data before other data is received in its place.
        least = std::min(least, simt::load(&head, simt::Order::kAcquire));
    }
    return least;
}

// Receives what there is, at least a byte, into the part of the ring that is being filled; begins a
// part when the kernel has read its old data. Returns 0 if the sender has closed the connection or
// the thread must end.
std::size_t TcpUnpacker::receive_some(const std::stop_token& stop) {
    const std::size_t part_bytes = bounce_.size() / kParts;
    const std::uint64_t last_read = read_before_[received_ / part_bytes % kParts];
    if (received_ % part_bytes == 0 && !wait(stop, [&] { return read_by_all() >= last_read; })) {
        return 0;
    }
    while (!stop.stop_requested()) {
        const ssize_t received =
            ::recv(socket_.get(), bounce_.as<std::byte>() + received_ % bounce_.size(),
                   part_bytes - received_ % part_bytes, 0);
        if (received >= 0) {
            return static_cast<std::size_t>(received);
        }
        if (errno != EAGAIN && errno != EINTR) {  // EAGAIN: kLookEvery has passed
            throw_errno("recv() from TCP");
        }
    }
    return 0;
}

// Posts descriptors of all data received. Returns false if the thread must end.
bool TcpUnpacker::describe(const std::stop_token& stop) {
    auto* queue = queue_.as<UnpackQueue>();
    for (;;) {
        const std::uint64_t place = described_ % bounce_.size();
        if (rest_.length == 0 && described_ + sizeof(rest_) <= received_) {
            // The header does not wrap: it begins at a unit, and each part is whole units.
            std::memcpy(&rest_, bounce_.as<std::byte>() + place, sizeof(rest_));
            described_ += sizeof(rest_) + rest_.destination % kUnit;
        } else if (rest_.length > 0 && described_ < received_) {
            const std::uint64_t bytes = std::min(rest_.length, received_ - described_);
            if (!wait(stop, [&] { return next_ - read_by_all() < kUnpackDepth; })) {
                return false;
            }
            queue->descriptors[next_ % kUnpackDepth] = {place, bytes, rest_.destination};
            // Release: the descriptor and the data come first.
            simt::store(&queue->tail, ++next_, simt::Order::kRelease);
            posted_.fetch_add(bytes, std::memory_order_relaxed);
            described_ += bytes;
            rest_.destination += bytes;
            rest_.length -= bytes;
        } else {
            return true;
        }
        if (rest_.length == 0) {
            described_ += (0 - described_) % kUnit;  // the padding
        }
    }
}

void TcpUnpacker::run(const std::stop_token& stop) {
    // recv() itself waits with a limit: one system call, not two.
    if (::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLookEvery, sizeof(kLookEvery)) !=
        0) {
        throw_errno("setsockopt(SO_RCVTIMEO)");
    }
    while (const std::size_t bytes = receive_some(stop)) {
        received_ += bytes;
        if (!describe(stop)) {
            return;
        }
        const std::size_t part_bytes = bounce_.size() / kParts;
        read_before_[(received_ - 1) / part_bytes % kParts] = next_;
    }
    if (stop.stop_requested()) {
        return;
    }
    if (rest_.length > 0) {
        throw std::runtime_error(
            fmt::format("rank {} closed its TCP connection {} bytes before the end of a piece",
                        peer_, rest_.length));
    }
    if (received_ > described_) {
        throw std::runtime_error(
            fmt::format("rank {} closed its TCP connection within a header", peer_));
    }
    closed_.store(true, std::memory_order_release);
}

void TcpUnpacker::receive(CUdeviceptr user, std::size_t user_bytes, std::size_t bytes,
                          CUstream stream) {
    if (!is_addressable(user, user_bytes, 1) || !is_addressable(0, bytes, 1)) {
        throw std::invalid_argument(
            fmt::format("{} bytes of a message, for {} bytes at {:#x}, do not fit in any memory",
                        bytes, user_bytes, user));
    }
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
