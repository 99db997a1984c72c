#pragma once
/// \file
/// The kernel of the transport: one launch sends a message, receives one, or does both at once.
///
/// A message is cut into chunks, each as large as a slot. Chunk k goes through channel k mod
/// channels, so both sides compute its channel from its number. Each block serves one channel in
/// one direction: the first blocks send, the blocks after them receive. All blocks must run at the
/// same time. They are few enough for any GPU.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/simt/pack.hpp"
#include "labs/04_shm_transport/fifo.hpp"

namespace symm {

/// Copies with all threads of a block, 16 bytes at once where the addresses are aligned.
__host__ __device__ inline void copy_with_block(const simt::ThreadBlock& block,
                                                std::byte* destination, const std::byte* source,
                                                std::uint64_t bytes) {
    constexpr std::uint64_t kWide = sizeof(simt::Pack16);
    constexpr unsigned kAtOnce = 4;  // loads in flight per thread, to hide the latency of the bus
    std::uint64_t done = 0;
    const auto addresses =
        reinterpret_cast<std::uintptr_t>(destination) | reinterpret_cast<std::uintptr_t>(source);
    if (addresses % kWide == 0) {
        const auto* from = reinterpret_cast<const simt::Pack16*>(source);
        auto* to = reinterpret_cast<simt::Pack16*>(destination);
        const std::uint64_t vectors = bytes / kWide;
        std::uint64_t i = block.thread_rank();
        for (; i + (kAtOnce - 1) * block.size() < vectors; i += kAtOnce * block.size()) {
            simt::Pack16 piece[kAtOnce];
            for (unsigned j = 0; j < kAtOnce; ++j) {
                piece[j] = from[i + j * block.size()];
            }
            for (unsigned j = 0; j < kAtOnce; ++j) {
                to[i + j * block.size()] = piece[j];
            }
        }
        for (; i < vectors; i += block.size()) {
            to[i] = from[i];
        }
        done = vectors * kWide;
    }
    for (std::uint64_t i = done + block.thread_rank(); i < bytes; i += block.size()) {
        destination[i] = source[i];
    }
}

/// One direction of a transfer.
template <class Byte>
struct FifoMessage {
    FifoConnection connection;
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
};

/// The kernel. Needs sizeof(FifoBlockState) bytes of shared memory, and blocks() blocks.
struct TransferKernel {
    FifoMessage<const std::byte> outbound;
    FifoMessage<std::byte> inbound;
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
        FifoSender sender(block, outbound.connection.fifo(channel), {rank, outbound.peer, timeout},
                          block.shared<FifoBlockState>());
        for (std::uint64_t k = channel; k < outbound.chunks(); k += outbound.connection.channels) {
            std::byte* slot = sender.acquire();
            if (slot == nullptr) {
                return;  // as all threads of the block do
            }
            copy_with_block(block, slot, outbound.at(k), outbound.chunk_bytes(k));
            sender.post(outbound.left(k));
        }
    }

    __host__ __device__ void receive(const simt::ThreadBlock& block, std::uint32_t channel) const {
        FifoReceiver receiver(block, inbound.connection.fifo(channel),
                              {rank, inbound.peer, timeout}, block.shared<FifoBlockState>());
        for (std::uint64_t k = channel; k < inbound.chunks(); k += inbound.connection.channels) {
            const std::byte* slot = receiver.acquire(inbound.left(k));
            if (slot == nullptr) {
                return;  // as all threads of the block do
            }
            copy_with_block(block, inbound.at(k), slot, inbound.chunk_bytes(k));
            receiver.release();
        }
    }
};

/// Queues the transfer with `threads` threads per block; queues nothing if all messages are empty.
/// Throws CudaError. (In a .cu file, so that other files need no nvcc.)
void launch_transfer(CUstream stream, unsigned threads, const TransferKernel& transfer);

}  // namespace symm
