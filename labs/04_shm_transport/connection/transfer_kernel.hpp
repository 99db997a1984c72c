#pragma once
/// \file
/// The kernel of the transport: one launch sends a message, receives one, or does both at once.
///
/// A message is cut into chunks, each as large as a slot. Chunk k goes through channel k mod
/// channels, so both sides compute its channel from its number. Each block serves one channel in
/// one direction: the first blocks send, the blocks after them receive. All blocks must run at the
/// same time.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/simt/thread_block.hpp"
#include "labs/04_shm_transport/connection/copy_bytes.hpp"
#include "labs/04_shm_transport/connection/fifo.hpp"

namespace symm {

/// One direction of a transfer.
template <class Byte>
struct Message {
    Connection connection;
    Byte* data;
    std::uint64_t bytes;
    int peer;

    /// Channels, and so blocks, that have work. None for an empty message.
    __host__ __device__ std::uint32_t blocks() const {
        const std::uint64_t all = chunks();
        return all < connection.channels ? static_cast<std::uint32_t>(all) : connection.channels;
    }
    __host__ __device__ std::uint64_t chunks() const {
        return bytes == 0 ? 0 : (bytes - 1) / connection.slot_bytes + 1;
    }
    /// Bytes of the message from a chunk on.
    __host__ __device__ std::uint64_t left(std::uint64_t chunk) const {
        return bytes - chunk * connection.slot_bytes;
    }
    __host__ __device__ Byte* at(std::uint64_t chunk) const {
        return data + chunk * connection.slot_bytes;
    }
    __host__ __device__ std::uint64_t chunk_bytes(std::uint64_t chunk) const {
        const std::uint64_t rest = left(chunk);
        return rest < connection.slot_bytes ? rest : connection.slot_bytes;
    }
    /// Whether the data lies in the connection's staging memory already.
    __host__ __device__ bool is_staged() const {
        const std::byte* staging = connection.buffer + connection.slots_bytes();
        return data >= staging && data + bytes <= staging + connection.staging_bytes;
    }
};

/// The kernel. Needs sizeof(EndState) bytes of shared memory, and blocks() blocks.
struct TransferKernel {
    Message<const std::byte> outbound;
    Message<std::byte> inbound;
    int rank;
    simt::Timeout timeout;

    __host__ __device__ std::uint32_t blocks() const {
        return outbound.blocks() + inbound.blocks();
    }

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const std::uint32_t senders = outbound.blocks();
        if (block.group_index() < senders) {
            send(block, block.group_index());
        } else {
            receive(block, block.group_index() - senders);
        }
    }

private:
    __host__ __device__ void send(const simt::ThreadBlock& block, std::uint32_t channel) const {
        const Message<const std::byte>& message = outbound;
        ConnectionSender sender(block, message.connection.end(channel),
                                {rank, message.peer, timeout}, block.shared<EndState>());
        const bool staged = message.is_staged();
        for (std::uint64_t k = channel; k < message.chunks(); k += message.connection.channels) {
            std::byte* slot = sender.acquire();
            if (slot == nullptr) {
                return;  // as all threads of the block do
            }
            const std::uint64_t bytes = message.chunk_bytes(k);
            if (staged) {
                const auto offset =
                    static_cast<std::uint64_t>(message.at(k) - message.connection.buffer);
                sender.post({StepMode::kOffset, offset, bytes, message.left(k)});
            } else {
                copy_bytes(block.thread_rank(), block.size(), slot, message.at(k), bytes);
                sender.post({StepMode::kNormal, 0, bytes, message.left(k)});
            }
        }
        if (staged) {
            sender.drained();  // the caller may overwrite the data once this kernel has ended
        }
    }

    __host__ __device__ void receive(const simt::ThreadBlock& block, std::uint32_t channel) const {
        const Message<std::byte>& message = inbound;
        ConnectionReceiver receiver(block, message.connection.end(channel),
                                    {rank, message.peer, timeout}, block.shared<EndState>());
        for (std::uint64_t k = channel; k < message.chunks(); k += message.connection.channels) {
            const std::uint64_t bytes = message.chunk_bytes(k);
            const std::byte* data = receiver.acquire(bytes, message.left(k));
            if (data == nullptr) {
                return;  // as all threads of the block do
            }
            copy_bytes(block.thread_rank(), block.size(), message.at(k), data, bytes);
            receiver.release();
        }
    }
};

/// Queues the transfer; queues nothing if all messages are empty. Throws CudaError. (In a .cu file,
/// so that other files need no nvcc.)
void launch_transfer(CUstream stream, const TransferKernel& transfer);

/// The number of its blocks that the current device keeps resident.
unsigned transfer_resident_blocks();

}  // namespace symm
