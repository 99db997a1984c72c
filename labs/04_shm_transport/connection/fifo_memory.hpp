#pragma once
/// \file
/// The memory of a connection: the counters, the entries and the slots, as plain words. The
/// protocol of fifo.hpp defines their meaning, and which side may access them when.
///
/// Source: NCCL's `ncclSendMem`, `ncclRecvMem` and `ncclConnFifo` in src/include/comm.h and
/// collectives.h (NCCL_STEPS is also 8).

#include <cstddef>
#include <cstdint>

#include "common/simt/atomic.hpp"

namespace symm {

/// Slots of a connection (NCCL_STEPS).
inline constexpr unsigned kSteps = 8;

/// Where a step's data is: in its slot, or anywhere in the connection's buffer (NCCL_MODE_NORMAL,
/// NCCL_MODE_OFFSET).
enum class StepMode : std::uint32_t { kNormal, kOffset };

/// The description of a step's data: NCCL's ncclConnFifo. Written by the sender.
struct FifoEntry {
    StepMode mode;
    std::uint64_t offset;  ///< In offset mode: the data's offset from the buffer's start.
    std::uint64_t size;    ///< Bytes of this step.
    std::uint64_t left;    ///< Bytes of the message from this step on, including `size`.

    /// Reads an entry once. The other side may be another process, and could change the entry
    /// between a check and a second read.
    __host__ __device__ static FifoEntry read(const FifoEntry& entry) {
        constexpr simt::Order kRelaxed = simt::Order::kRelaxed;
        return {simt::load(&entry.mode, kRelaxed), simt::load(&entry.offset, kRelaxed),
                simt::load(&entry.size, kRelaxed), simt::load(&entry.left, kRelaxed)};
    }
};

/// The word that the sender polls. It has its own cache line, so that writes to other words do not
/// slow the polls down.
struct alignas(128) SendMem {
    std::uint64_t head;  ///< Steps emptied. Written by the receiver.
};

/// The word that the receiver polls, and the entries.
struct alignas(128) RecvMem {
    std::uint64_t tail;  ///< Steps filled. Written by the sender.
    FifoEntry fifo[kSteps];
};

/// One channel of a connection, as one side sees it: with the addresses of its own process.
struct ConnectionEnd {
    SendMem* send;
    RecvMem* receive;
    std::uint64_t* step;  ///< The steps that this side has made, in memory of its own.
    std::byte* slots;     ///< kSteps times slot_bytes, aligned to 128.
    std::uint64_t slot_bytes;
    std::byte* buffer;  ///< The connection's whole buffer, for offset mode.
    std::uint64_t buffer_bytes;
    std::uint32_t channel;

    __host__ __device__ std::byte* slot(std::uint64_t of_step) const {
        return slots + of_step % kSteps * slot_bytes;
    }
    /// The data of a step, or null if the entry points outside the buffer: values written by
    /// another process are checked before use.
    __host__ __device__ std::byte* data(std::uint64_t of_step, const FifoEntry& entry) const {
        if (entry.mode == StepMode::kNormal) {
            return entry.size <= slot_bytes ? slot(of_step) : nullptr;
        }
        const bool inside = entry.mode == StepMode::kOffset && entry.size <= buffer_bytes &&
                            entry.offset <= buffer_bytes - entry.size;
        return inside ? buffer + entry.offset : nullptr;
    }
};

/// A connection from one rank to another, as one side sees it. One group of threads on each side
/// serves a channel. One block cannot use the whole bandwidth of a bus, so there are several
/// channels.
struct Connection {
    SendMem* send;  ///< One per channel, as the next two. All zeroed before the first use.
    RecvMem* receive;
    std::uint64_t* steps;      ///< Null for a proxy, which counts by itself.
    std::byte* buffer;         ///< The slots of all channels, then `staging_bytes` for offset mode.
    std::uint64_t slot_bytes;  ///< A multiple of 128.
    std::uint64_t staging_bytes;
    std::uint32_t channels;

    __host__ __device__ std::uint64_t slots_bytes() const { return channels * kSteps * slot_bytes; }
    __host__ __device__ ConnectionEnd end(std::uint32_t channel) const {
        return {send + channel,
                receive + channel,
                steps == nullptr ? nullptr : steps + channel,
                buffer + channel * kSteps * slot_bytes,
                slot_bytes,
                buffer,
                slots_bytes() + staging_bytes,
                channel};
    }
};

}  // namespace symm
