#pragma once
/// \file
/// A FIFO between two GPUs, in memory that both can reach: eight slots and two counters.
///
///     sender's GPU                    host memory                       receiver's GPU
///                          +--------------------------------+
///       data ---stores---> | slot 0 | slot 1 | ... | slot 7 | ---loads---> data
///                          +--------------------------------+
///       polls head <------ | SendMem: head                  | <------ writes head
///       writes tail -----> | RecvMem: tail, left[8]         | ------> polls tail
///                          +--------------------------------+
///
/// Both counters count slots since the FIFO was made, and never go back: `tail` those the sender
/// has filled, `head` those the receiver has emptied. Step s uses slot s mod 8.
///
/// | step s | who      | waits for    | order       | then does                   | tells        | order       |
/// |--------|----------|--------------|-------------|-----------------------------|--------------|-------------|
/// | fill   | sender   | head + 8 > s | acquire (1) | writes slot, left[s mod 8]  | tail = s + 1 | release (2) |
/// | empty  | receiver | tail > s     | acquire (3) | reads left and slot         | head = s + 1 | release (4) |
///
/// - (2) to (3): who sees the tail sees the slot. Without either, the receiver reads what was in
///   the slot eight steps ago.
/// - (4) to (1): who sees the head knows that the slot has been read. Without either, the sender
///   overwrites a slot that is still being read.
/// - One thread of a block waits and tells, all of them copy. The block sync between makes the
///   order hold for all: wait, sync, copy, sync, tell.
/// - It cannot deadlock by itself: head <= tail <= head + 8 always, so never do both sides wait.
///   Two ranks that each send more than eight slots before they receive do wait for each other:
///   that is why a transfer sends and receives in one kernel, in different blocks.
/// - A call cannot be overtaken by the next: a step is one place in one sequence, and each side
///   makes its steps in order. Where the calls do not match, left[] shows it: it says how many
///   bytes of the message are still to come, and the receiver knows how many it expects.
/// - The counters go on over launches. A kernel finds its own place by reading the counter that
///   only its side writes, so a replayed graph is right as well.
/// - Whoever gives up waiting touches neither slot nor counter any more. The other side then gives
///   up as well; it never takes wrong data for right.
///
/// Source: NCCL's `ncclSendMem` and `ncclRecvMem` in src/include/comm.h (NCCL_STEPS is 8 too), and
/// `waitPeer` and `postPeer` in src/device/prims_simple.h.

#include <cstddef>
#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

/// Slots of a FIFO.
inline constexpr unsigned kFifoSteps = 8;

/// What the sender polls. A cache line of its own: the other side's writes disturb nothing else.
struct alignas(128) SendMem {
    std::uint64_t head;  ///< Slots emptied. Written by the receiver.
};

/// What the receiver polls.
struct alignas(128) RecvMem {
    std::uint64_t tail;              ///< Slots filled. Written by the sender.
    std::uint64_t left[kFifoSteps];  ///< Of each filled slot: bytes of its message from there on.
};

/// The counters of one FIFO. All zero is an empty FIFO.
struct FifoControl {
    SendMem send;
    RecvMem receive;
};

/// One FIFO, as both sides see it (each at its own addresses).
struct Fifo {
    FifoControl* control;
    std::byte* slots;  ///< kFifoSteps times slot_bytes, aligned to 128.
    std::uint64_t slot_bytes;

    __host__ __device__ std::byte* slot(std::uint64_t step) const {
        return slots + step % kFifoSteps * slot_bytes;
    }
};

/// A way from one rank to another: a FIFO a channel, one behind the other in one piece of memory.
/// A channel is served by one block on each side; several are needed to fill a bus.
struct FifoConnection {
    std::byte* memory;  ///< bytes_needed(), zeroed before anybody uses it, aligned to 128.
    std::uint64_t slot_bytes;
    std::uint32_t channels;

    /// Bytes for `channels` FIFOs with slots of `slot_bytes`, a multiple of 128.
    __host__ __device__ static constexpr std::size_t bytes_needed(std::uint32_t channels,
                                                                  std::uint64_t slot_bytes) {
        return channels * (sizeof(FifoControl) + kFifoSteps * slot_bytes);
    }
    __host__ __device__ Fifo fifo(std::uint32_t channel) const {
        return {reinterpret_cast<FifoControl*>(memory) + channel,
                memory + channels * sizeof(FifoControl) + channel * kFifoSteps * slot_bytes,
                slot_bytes};
    }
};

/// The receiver met a slot of another message than it expected. In pinned host memory, zeroed. The
/// receiver then ends the waits of its launch, as the host would (WaitReport::kAborted).
struct FifoMismatch {
    std::uint32_t met;
    std::int32_t peer;
    std::uint64_t expected;  ///< Bytes of the message from that slot on, by the receiver.
    std::uint64_t sent;      ///< The same by the sender.
};

/// Who is at the two ends, how long a wait may last and where failures are told.
struct FifoEnds {
    int rank;
    int peer;
    simt::Timeout timeout;
    FifoMismatch* mismatch;
};

/// What the threads of a block tell each other. In the block's shared memory.
struct FifoTurn {
    std::uint64_t step;
    std::uint32_t go;
};

/// The sending end, as seen by every thread of the one block that serves it.
class FifoSender {
public:
    /// All threads of the block make it together.
    __host__ __device__ FifoSender(const simt::ThreadBlock& block, const Fifo& fifo,
                                   const FifoEnds& ends)
        : block_(block), fifo_(fifo), ends_(ends) {
        FifoTurn* turn = block.shared<FifoTurn>();
        if (block.thread_rank() == 0) {
            // Relaxed: it is this side's own counter, and the launch before this has ended.
            turn->step = simt::load(&fifo.control->receive.tail, simt::Order::kRelaxed);
        }
        block.sync();
        step_ = turn->step;
        head_ = step_ - kFifoSteps;  // nothing known yet: as full as can be
    }

    /// Waits for the next slot to be free. All threads call it and all get it, or all get null
    /// where the wait gave up: then leave, and post nothing.
    __host__ __device__ std::byte* acquire() {
        FifoTurn* turn = block_.shared<FifoTurn>();
        if (block_.thread_rank() == 0) {
            turn->go = wait_for_space() ? 1 : 0;
        }
        block_.sync();
        return turn->go != 0 ? fifo_.slot(step_) : nullptr;
    }

    /// Hands the slot over. `left` is the bytes of the message from this slot on.
    __host__ __device__ void post(std::uint64_t left) {
#ifndef SYMM_MUTANT_NO_SYNC  // a mutant of the tests, which ThreadSanitizer must report
        block_.sync();       // all threads have written
#endif
        if (block_.thread_rank() == 0) {
            fifo_.control->receive.left[step_ % kFifoSteps] = left;
            // Release (2): the slot, written by all threads before the sync, is seen first.
            simt::store(&fifo_.control->receive.tail, step_ + 1, simt::Order::kRelease);
        }
        ++step_;
    }

private:
    __host__ __device__ bool wait_for_space() {
        // A poll crosses the bus: ask only when what was seen last does not suffice.
        if (step_ - head_ < kFifoSteps) {
            return true;
        }
        const simt::Waiting waiting{simt::Wait::kFifoSpace, ends_.rank, ends_.peer,
                                    step_ + 1 - kFifoSteps};
        return ends_.timeout.until(waiting, [this](std::uint64_t& seen) {
            // Acquire (1): the receiver has read the slot before we write to it.
            head_ = seen = simt::load(&fifo_.control->send.head, simt::Order::kAcquire);
            return step_ - head_ < kFifoSteps;
        });
    }

    simt::ThreadBlock block_;
    Fifo fifo_;
    FifoEnds ends_;
    std::uint64_t step_;
    std::uint64_t head_;  // of thread 0: the last head seen
};

/// The receiving end, as seen by every thread of the one block that serves it.
class FifoReceiver {
public:
    /// All threads of the block make it together.
    __host__ __device__ FifoReceiver(const simt::ThreadBlock& block, const Fifo& fifo,
                                     const FifoEnds& ends)
        : block_(block), fifo_(fifo), ends_(ends) {
        FifoTurn* turn = block.shared<FifoTurn>();
        if (block.thread_rank() == 0) {
            // Relaxed: it is this side's own counter, and the launch before this has ended.
            turn->step = simt::load(&fifo.control->send.head, simt::Order::kRelaxed);
        }
        block.sync();
        step_ = turn->step;
        tail_ = step_;  // nothing known yet: empty
    }

    /// Waits for the next slot to be filled with a message of which `left` bytes are to come. All
    /// threads call it and all get the slot, or all get null where the wait gave up or the message
    /// is another: then leave, and release nothing.
    __host__ __device__ const std::byte* acquire(std::uint64_t left) {
        FifoTurn* turn = block_.shared<FifoTurn>();
        if (block_.thread_rank() == 0) {
            turn->go = wait_for_data() && is_expected(left) ? 1 : 0;
        }
        block_.sync();
        return turn->go != 0 ? fifo_.slot(step_) : nullptr;
    }

    /// Gives the slot back to the sender.
    __host__ __device__ void release() {
        block_.sync();  // all threads have read
        if (block_.thread_rank() == 0) {
            // Release (4): the slot has been read, by all threads before the sync.
            simt::store(&fifo_.control->send.head, step_ + 1, simt::Order::kRelease);
        }
        ++step_;
    }

private:
    __host__ __device__ bool wait_for_data() {
        if (tail_ != step_) {  // seen with an earlier slot: its acquire covers this one too
            return true;
        }
        const simt::Waiting waiting{simt::Wait::kFifoData, ends_.rank, ends_.peer, step_ + 1};
        return ends_.timeout.until(waiting, [this](std::uint64_t& seen) {
            // Acquire (3): what the sender wrote to the slot is seen after this.
            tail_ = seen = simt::load(&fifo_.control->receive.tail, simt::Order::kAcquire);
            return tail_ != step_;
        });
    }

    __host__ __device__ bool is_expected(std::uint64_t left) const {
        const std::uint64_t sent = fifo_.control->receive.left[step_ % kFifoSteps];
        if (sent == left) {
            return true;
        }
        // Stops the waits of the other channels as well: nothing can be right any more.
        if (simt::claim(&ends_.timeout.report->state, simt::WaitReport::kRunning,
                        simt::WaitReport::kAborted)) {
            *ends_.mismatch = {1, ends_.peer, left, sent};
        }
        return false;
    }

    simt::ThreadBlock block_;
    Fifo fifo_;
    FifoEnds ends_;
    std::uint64_t step_;
    std::uint64_t tail_;  // of thread 0: the last tail seen
};

}  // namespace symm
