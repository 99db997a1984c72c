#pragma once
/// \file
/// UNIX sockets that carry packets, file descriptors, and the peer's identity.
///
/// With SOCK_SEQPACKET a message stays whole: one receive returns what one send has sent, with all
/// descriptors. Names are in the abstract namespace: there is no file, and the name is free again
/// when the socket is closed. Every call ends by its deadline. Errors of the system are thrown as
/// std::system_error. See unix(7) and cmsg(3).

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/sys/deadline.hpp"
#include "common/sys/descriptor.hpp"

namespace symm {

/// How a send or a receive ended.
enum class Io {
    kDone,
    kClosed,  ///< The peer is gone.
    kLate,    ///< The deadline passed.
};

/// The most descriptors the kernel takes in one packet (SCM_MAX_FD).
inline constexpr std::size_t kMaxPacketDescriptors = 253;

/// Listens at a name of at most 107 characters. Throws std::system_error (EADDRINUSE) while another
/// socket has it.
[[nodiscard]] UniqueFd listen_at(std::string_view name, int backlog);

/// Connects, and retries while no socket listens at the name. Empty once the deadline has passed.
[[nodiscard]] UniqueFd connect_to(std::string_view name, Deadline deadline);

/// Accepts a connection; empty if there is none now. Does not wait.
[[nodiscard]] UniqueFd accept_now(const UniqueFd& listener);

/// Two connected sockets.
std::pair<UniqueFd, UniqueFd> socket_pair();

/// The process at the other end, its user and its group, at the time of the connection.
ucred peer_credentials(int socket);

/// A received packet.
struct SocketPacket {
    std::vector<std::byte> bytes;
    std::vector<UniqueFd> descriptors;  ///< Close-on-exec.
    /// The packet was longer than asked for, or not all descriptors could be received (this process
    /// has too many open): those that arrived have been closed.
    bool cut = false;
};

/// Sends one packet. `bytes` is not empty; descriptors stay the caller's.
Io send_packet(int socket, std::span<const std::byte> bytes, std::span<const UniqueFd> descriptors,
               Deadline deadline);

/// Receives one packet of at most `most` bytes.
Io receive_packet(int socket, std::size_t most, SocketPacket& packet, Deadline deadline);

/// The state of a connection, read without taking anything from it.
struct Peek {
    bool closed = false;  ///< The peer is gone. What it sent before may still be unread.
    /// The packet that comes next, at most `most` bytes of it; empty for none.
    std::vector<std::byte> first;
};
Peek peek_at(int socket, std::size_t most);

/// Waits until one of the descriptors can be read (or its peer is gone); entries of -1 are left
/// out. Returns their indices, none once the deadline has passed.
std::vector<std::size_t> wait_readable(std::span<const int> descriptors, Deadline deadline);

}  // namespace symm
