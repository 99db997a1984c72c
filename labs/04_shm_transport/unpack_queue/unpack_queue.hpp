#pragma once
/// \file
/// A network-device queue: a kernel reassembles data that a network delivers in pieces. A host
/// thread describes the pieces: descriptor i is entry i mod kUnpackDepth of the queue. Every block
/// of the kernel reads all descriptors, and copies its share of each piece into the user's buffer.
/// README.md draws this, and has the reasons.
///
/// | side  | waits for                | order   | then does                          | then stores      | order   |
/// |-------|--------------------------|---------|------------------------------------|------------------|---------|
/// | host  | each head > j, the last descriptor of a part of the ring | acquire | receives into that part | | |
/// | host  | each head + kUnpackDepth > i | acquire | writes descriptor i            | tail = i + 1     | release |
/// | block | tail > i                 | acquire | reads descriptor i, loads its share, stores it | its head = i + 1 | release |

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/simt/waiter.hpp"
#include "labs/04_shm_transport/connection/transfer_kernel.hpp"

namespace symm {

/// Descriptors of a queue.
inline constexpr unsigned kUnpackDepth = 256;
/// Blocks of the kernel. One block has too few loads in flight to hide the latency of the bus.
inline constexpr unsigned kUnpackBlocks = 4;

/// One piece.
struct UnpackDescriptor {
    std::uint64_t source;       ///< Bytes from the start of the bounce buffer.
    std::uint64_t length;       ///< Bytes.
    std::uint64_t destination;  ///< Bytes from the start of the user's buffer.
};

/// In pinned host memory, zeroed before the first use.
struct UnpackQueue {
    alignas(128) std::uint64_t heads[kUnpackBlocks];  ///< Each is written by a block of the kernel.
    alignas(128) std::uint64_t tail;                  ///< Written by the host thread.
    UnpackDescriptor descriptors[kUnpackDepth];
};

/// The kernel: kUnpackBlocks blocks, each with a word of shared memory. Stores `bytes` bytes and
/// ends. The next launch continues with the next descriptor.
struct UnpackKernel {
    UnpackQueue* queue;
    const std::byte* bounce;
    std::uint64_t bounce_bytes;
    std::byte* user;
    std::uint64_t user_bytes;
    std::uint64_t bytes;
    simt::Timeout timeout;
    int rank;
    int peer;  ///< The sender, for error messages.

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        auto* batch_end = block.shared<std::uint64_t>();  // from thread 0 for its block
        simt::Waiter waiter(timeout);
        std::uint64_t* head = &queue->heads[block.group_index()];
        std::uint64_t next = simt::load(head, simt::Order::kRelaxed);  // its own counter
        for (std::uint64_t stored = 0; stored < bytes;) {
            if (block.thread_rank() == 0) {
                *batch_end = wait_for_tail(waiter, next);
            }
            block.sync();
            const std::uint64_t end = *batch_end;
            if (end == next) {
                return;  // the wait failed, as all threads of the block see
            }
            for (; next != end && stored < bytes; ++next) {
                const UnpackDescriptor piece = queue->descriptors[next % kUnpackDepth];
                if (!is_inside(piece, bytes - stored)) {
                    if (block.thread_rank() == 0) {
                        waiter.fail({simt::Wait::kDescriptor, rank, peer, user_bytes},
                                    piece.destination);
                    }
                    return;
                }
                copy_bytes(block.grid_rank(), block.grid_size(), user + piece.destination,
                           bounce + piece.source, piece.length);
                stored += piece.length;
            }
            block.sync();
            if (block.thread_rank() == 0) {
                simt::store(head, next, simt::Order::kRelease);
            }
        }
    }

private:
    /// The tail, once it is beyond `next`; `next` if the wait timed out, or if the tail
    /// claims more descriptors than the queue holds.
    __host__ __device__ std::uint64_t wait_for_tail(simt::Waiter& waiter,
                                                    std::uint64_t next) const {
        std::uint64_t tail = next;
        waiter.until({simt::Wait::kFifoData, rank, peer, next + 1}, [&](std::uint64_t& seen) {
            tail = seen = simt::load(&queue->tail, simt::Order::kAcquire);
            return tail != next;
        });
        if (tail - next > kUnpackDepth) {
            waiter.fail({simt::Wait::kDescriptor, rank, peer, user_bytes}, tail);
            return next;
        }
        return tail;
    }
    __host__ __device__ bool is_inside(const UnpackDescriptor& piece, std::uint64_t most) const {
        return piece.length != 0 && piece.length <= most && piece.source <= bounce_bytes &&
               piece.length <= bounce_bytes - piece.source && piece.destination <= user_bytes &&
               piece.length <= user_bytes - piece.destination;
    }
};

/// Queues the kernel. Throws CudaError.
void launch_unpack(CUstream stream, const UnpackKernel& kernel);

}  // namespace symm
