#pragma once
/// \file
/// Receives messages over TCP into a GPU's memory, by the queue of unpack_queue.hpp.
///
/// On the wire, a piece is a header and its bytes:
///
///     | destination: 8 bytes | length: 8 bytes | data: `length` bytes |     little-endian
///
/// The sender chooses pieces and their order as it likes. The host thread receives whatever TCP has
/// ready, up to a page at once, so a piece of the wire can become several descriptors.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/cuda/kernel_timeout.hpp"
#include "common/cuda/stream.hpp"
#include "common/sys/descriptor.hpp"
#include "labs/04_shm_transport/pinned_calloc.hpp"
#include "labs/04_shm_transport/service_thread.hpp"
#include "labs/04_shm_transport/unpack_queue.hpp"

namespace symm {

/// Two connected TCP sockets of this machine. Throws std::system_error.
std::pair<UniqueFd, UniqueFd> loopback_tcp_pair();

/// Sends a piece of a message over a connected TCP socket. Throws std::system_error, and
/// std::runtime_error once SYMM_TIMEOUT has passed.
void send_piece(const UniqueFd& socket, std::uint64_t destination, std::span<const std::byte> data);

/// The receiving side. Needs the context that is current at construction, also later.
class TcpUnpacker {
public:
    /// `socket` is a connected TCP socket. `rank` and `peer`, which sends, are for error messages.
    /// `page_bytes` is the most that becomes one descriptor.
    TcpUnpacker(UniqueFd socket, int rank, int peer, std::size_t page_bytes = 256 * 1024,
                std::chrono::nanoseconds limit = Deadline::standard_limit());

    /// Queues the kernel that stores the next `bytes` bytes of pieces in `user`, which has
    /// `user_bytes`. Throws CudaError.
    void receive(CUdeviceptr user, std::size_t user_bytes, std::size_t bytes, CUstream stream);
    /// Waits for all that was queued. Throws std::runtime_error where a piece was refused, a wait
    /// timed out or the sender is gone.
    void finish(const Stream& stream);

private:
    void run(const ServiceThread& thread);
    bool receive_all(const ServiceThread& thread, std::byte* to, std::size_t bytes);
    std::size_t receive_some(const ServiceThread& thread, std::byte* to, std::size_t most);

    UniqueFd socket_;
    int rank_;
    int peer_;
    std::size_t page_bytes_;
    PinnedMemory queue_;
    PinnedMemory bounce_;
    KernelTimeout timeout_;
    std::uint64_t asked_ = 0;               ///< Bytes of all receive() so far.
    std::atomic<std::uint64_t> posted_{0};  ///< Bytes of all descriptors so far.
    std::atomic<bool> closed_{false};       ///< No more will be posted.
    ServiceThread thread_;
};

}  // namespace symm
