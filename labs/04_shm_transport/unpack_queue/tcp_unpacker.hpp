#pragma once
/// \file
/// Receives messages over TCP into a GPU's memory, through the queue of unpack_queue.hpp. The host
/// thread receives the stream unchanged into the bounce buffer, a ring of four parts, then
/// describes the data between the headers. On the wire, a piece is a header and its bytes, padded
/// to whole units of 16 bytes of the destination (README.md: why):
///
///     | destination: 8 bytes | length: 8 bytes | padding: destination mod 16 | data | padding |
///
/// Pieces may have any length, and come in any order. All numbers are little-endian.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/closed_on_fork.hpp"
#include "common/sys/descriptor.hpp"
#include "common/sys/service_thread.hpp"
#include "labs/04_shm_transport/host_memory/pinned_calloc.hpp"
#include "labs/04_shm_transport/unpack_queue/unpack_queue.hpp"

namespace symm {

/// Two connected TCP sockets of this machine. Throws std::system_error.
std::pair<UniqueFd, UniqueFd> loopback_tcp_pair();

/// The header before the data of a piece.
struct PieceHeader {
    std::uint64_t destination;  ///< Bytes from the start of the user's buffer.
    std::uint64_t length;       ///< Bytes of data.
};

/// Sends a piece of a message over a connected TCP socket. Throws std::system_error, and
/// std::runtime_error once SYMM_TIMEOUT has passed.
void send_piece(const UniqueFd& socket, std::uint64_t destination, std::span<const std::byte> data);

/// The receiving side. Every call needs the context that was current at construction.
class TcpUnpacker {
public:
    /// `socket` is a connected TCP socket. `rank` and `peer`, the sender, are for error messages.
    /// `bounce_bytes`, the size of the ring, is a multiple of 64.
    TcpUnpacker(UniqueFd socket, int rank, int peer, std::size_t bounce_bytes = 1 << 22,
                std::chrono::nanoseconds limit = Deadline::standard_limit());

    /// Queues the kernel that stores the next `bytes` bytes of pieces in `user`, which has
    /// `user_bytes`. Fast if `user` is a multiple of 16. Throws CudaError.
    void receive(CUdeviceptr user, std::size_t user_bytes, std::size_t bytes, CUstream stream);
    /// Waits for all that was queued. Throws std::runtime_error if a piece was refused, a wait
    /// timed out or the sender is gone.
    void finish(const Stream& stream);

private:
    static constexpr std::size_t kParts = 4;

    void run(const std::stop_token& stop);
    std::size_t receive_some(const std::stop_token& stop);
    bool describe(const std::stop_token& stop);
    std::uint64_t read_by_all() const;

    UniqueFd socket_;
    ClosedOnFork closed_on_fork_{{&socket_, 1}};
    int rank_;
    int peer_;
    PinnedMemory queue_;
    PinnedMemory bounce_;
    KernelTimeout timeout_;
    std::uint64_t asked_ = 0;               ///< Bytes of all receive() calls so far.
    std::atomic<std::uint64_t> posted_{0};  ///< Bytes of all descriptors so far.
    std::atomic<bool> closed_{false};       ///< No more will be posted.

    // Used by the thread alone. A position is a number of bytes from the start of the stream.
    // Position p lies at p mod the ring's size.
    std::uint64_t received_ = 0;   ///< Where the next byte will be received.
    std::uint64_t described_ = 0;  ///< The first data or header that is not yet described.
    PieceHeader rest_{};           ///< What is left of the current piece; length 0: nothing.
    std::uint64_t next_ = 0;       ///< The next descriptor.
    /// A part of the ring may be overwritten when all descriptors before this one have been read.
    std::array<std::uint64_t, kParts> read_before_{};
    ServiceThread thread_;
};

}  // namespace symm
