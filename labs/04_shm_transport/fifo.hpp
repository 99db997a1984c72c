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
/// Data moves in steps, numbered from 0 for as long as the FIFO lives. Step s uses slot s mod 8.
/// `tail` is the number of steps that the sender has filled, `head` the number that the receiver
/// has emptied. The sender's credit, head + 8 - s, is the number of slots that it may still fill.
///
/// The README explains release and acquire: what a thread did before a release store is visible to
/// a thread that sees the stored value with an acquire load.
///
/// | step s: who     | waits for    | order       | then does       | then stores  | order       |
/// |-----------------|--------------|-------------|-----------------|--------------|-------------|
/// | fill: sender    | head + 8 > s | acquire (1) | writes the slot | tail = s + 1 | release (2) |
/// | empty: receiver | tail > s     | acquire (3) | reads the slot  | head = s + 1 | release (4) |
///
/// - (2) with (3): the receiver that sees the tail sees the slot's data. If one of the two is
///   missing, it can read what was in the slot eight steps earlier.
/// - (4) with (1): the sender that sees the head knows that the slot has been read. If one of the
///   two is missing, it can overwrite a slot that is still being read.
/// - One thread of a block waits and stores the counter, all threads copy. The block's sync()
///   between them extends the order to all threads: wait, sync, copy, sync, store.
/// - One FIFO cannot deadlock: head <= tail <= head + 8 always holds, so its two sides never both
///   wait. Two ranks that each send more than eight slots before they receive do wait for each
///   other. So send_receive() does both in one kernel, in different blocks.
/// - A message cannot overtake another: each side makes its steps in order. left[s mod 8] says how
///   many bytes of the message remain from this slot on. The receiver compares this with the number
///   that it expects, and so notices when the two sides name different sizes.
/// - The counters are never reset. A kernel finds its step by reading the counter that only its own
///   side writes, so a replayed graph is right as well.
/// - A side whose wait has timed out changes neither slot nor counter. The other side then times
///   out as well: it never accepts incomplete data as complete.
///
/// Source: NCCL's `ncclSendMem` and `ncclRecvMem` in src/include/comm.h (NCCL_STEPS is 8 too), and
/// `waitPeer` and `postPeer` in src/device/prims_simple.h.
///
/// SYMM_MUTANT_FIFO_* take one order out, for the tests: ThreadSanitizer must report the data race.

#include <cstddef>
#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

/// Slots of a FIFO (NCCL_STEPS).
inline constexpr unsigned kFifoSteps = 8;

/// What the sender polls. It has its own cache line, so that writes to RecvMem do not slow the
/// polls down.
struct alignas(128) SendMem {
    std::uint64_t head;  ///< Steps emptied. Written by the receiver.
};

/// What the receiver polls.
struct alignas(128) RecvMem {
    std::uint64_t tail;              ///< Steps filled. Written by the sender.
    std::uint64_t left[kFifoSteps];  ///< For each slot: bytes of its message from there on.
};

/// The counters of one FIFO. All zero is an empty FIFO.
struct FifoControl {
    SendMem send;
    RecvMem receive;
};

/// One FIFO. Both sides have one, each with the addresses of its own process.
struct Fifo {
    FifoControl* control;
    std::byte* slots;  ///< kFifoSteps times slot_bytes, aligned to 128.
    std::uint64_t slot_bytes;

    __host__ __device__ std::byte* slot(std::uint64_t step) const {
        return slots + step % kFifoSteps * slot_bytes;
    }
};

/// A connection from one rank to another: one FIFO per channel. One block on each side serves a
/// channel. One block cannot use the whole bandwidth of a bus, so there are several channels.
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

/// The ranks at the two ends, and how long a wait may last.
struct FifoEnds {
    int rank;
    int peer;
    simt::Timeout timeout;
};

/// What thread 0 tells the other threads of its block, in the block's shared memory. Each
/// FifoSender and FifoReceiver of a block has its own.
struct FifoBlockState {
    std::uint64_t step;
    std::uint32_t ready;
};

/// The sending end of a FIFO. Every thread of the one block that serves it has a FifoSender.
class FifoSender {
public:
    /// All threads of the block construct it together. `state` is in the block's shared memory, and
    /// no other end uses it.
    __host__ __device__ FifoSender(const simt::ThreadBlock& block, const Fifo& fifo,
                                   const FifoEnds& ends, FifoBlockState* state)
        : block_(block), fifo_(fifo), ends_(ends), state_(state), waiter_(ends_.timeout) {
        if (block.thread_rank() == 0) {
            // Relaxed: only this side writes the counter, and its previous launch has ended.
            state->step = simt::load(&fifo.control->receive.tail, simt::Order::kRelaxed);
        }
        block.sync();
        step_ = state->step;
        head_ = step_ - kFifoSteps;  // not read yet: assume that there is no credit
    }

    /// Waits until the next slot is free. All threads call it. All get the slot, or all get null
    /// where the wait timed out: then leave, and do not post.
    __host__ __device__ std::byte* acquire() {
        if (block_.thread_rank() == 0) {
            state_->ready = wait_for_credit() ? 1 : 0;
        }
        block_.sync();
        return state_->ready != 0 ? fifo_.slot(step_) : nullptr;
    }

    /// Gives the filled slot to the receiver. `left` is the bytes of the message from here on.
    __host__ __device__ void post(std::uint64_t left) {
#ifndef SYMM_MUTANT_FIFO_NO_SYNC  // without it: thread 0 posts while others still write the slot
        block_.sync();
#endif
        if (block_.thread_rank() == 0) {
            fifo_.control->receive.left[step_ % kFifoSteps] = left;
#ifdef SYMM_MUTANT_FIFO_TAIL_STORE_RELAXED  // the stores to left and slot race with their loads
            simt::store(&fifo_.control->receive.tail, step_ + 1, simt::Order::kRelaxed);
#else
            // Release (2): left and the slot, which all threads wrote before the sync, come first.
            simt::store(&fifo_.control->receive.tail, step_ + 1, simt::Order::kRelease);
#endif
        }
        ++step_;
    }

private:
    __host__ __device__ bool wait_for_credit() {
        // A poll is a load over the bus: poll only when the head seen last gives no credit.
        if (step_ - head_ < kFifoSteps) {
            return true;
        }
        const simt::Waiting waiting{simt::Wait::kFifoSpace, ends_.rank, ends_.peer,
                                    step_ + 1 - kFifoSteps};
        return waiter_.until(waiting, [this](std::uint64_t& seen) {
#ifdef SYMM_MUTANT_FIFO_HEAD_LOAD_RELAXED  // the next stores to the slot race with its last loads
            head_ = seen = simt::load(&fifo_.control->send.head, simt::Order::kRelaxed);
#else
            // Acquire (1): the receiver has read the slot before this side writes to it.
            head_ = seen = simt::load(&fifo_.control->send.head, simt::Order::kAcquire);
#endif
            return step_ - head_ < kFifoSteps;
        });
    }

    simt::ThreadBlock block_;
    Fifo fifo_;
    FifoEnds ends_;
    FifoBlockState* state_;
    simt::Waiter waiter_;  // of thread 0
    std::uint64_t step_;
    std::uint64_t head_;  // of thread 0: the last head seen
};

/// The receiving end of a FIFO. Every thread of the one block that serves it has a FifoReceiver.
class FifoReceiver {
public:
    /// As FifoSender's constructor.
    __host__ __device__ FifoReceiver(const simt::ThreadBlock& block, const Fifo& fifo,
                                     const FifoEnds& ends, FifoBlockState* state)
        : block_(block), fifo_(fifo), ends_(ends), state_(state), waiter_(ends_.timeout) {
        if (block.thread_rank() == 0) {
            // Relaxed: only this side writes the counter, and its previous launch has ended.
            state->step = simt::load(&fifo.control->send.head, simt::Order::kRelaxed);
        }
        block.sync();
        step_ = state->step;
        tail_ = step_;  // not read yet: assume that the FIFO is empty
    }

    /// Waits until the next slot is filled, with a message of which `left` bytes remain. All
    /// threads call it. All get the slot, or all get null where the wait timed out or the sender
    /// named another number of bytes: then leave, and do not release.
    __host__ __device__ const std::byte* acquire(std::uint64_t left) {
        if (block_.thread_rank() == 0) {
            state_->ready = wait_for_data() && is_expected(left) ? 1 : 0;
        }
        block_.sync();
        return state_->ready != 0 ? fifo_.slot(step_) : nullptr;
    }

    /// Gives the emptied slot back to the sender, as a credit.
    __host__ __device__ void release() {
        block_.sync();  // all threads have read
        if (block_.thread_rank() == 0) {
#ifdef SYMM_MUTANT_FIFO_HEAD_STORE_RELAXED  // the loads of the slot race with its next stores
            simt::store(&fifo_.control->send.head, step_ + 1, simt::Order::kRelaxed);
#else
            // Release (4): the loads of the slot, by all threads before the sync, come first.
            simt::store(&fifo_.control->send.head, step_ + 1, simt::Order::kRelease);
#endif
        }
        ++step_;
    }

private:
    __host__ __device__ bool wait_for_data() {
        if (tail_ != step_) {  // the acquire that saw this tail covers all slots up to it
            return true;
        }
        const simt::Waiting waiting{simt::Wait::kFifoData, ends_.rank, ends_.peer, step_ + 1};
        return waiter_.until(waiting, [this](std::uint64_t& seen) {
#ifdef SYMM_MUTANT_FIFO_TAIL_LOAD_RELAXED  // the loads of left and slot race with their stores
            tail_ = seen = simt::load(&fifo_.control->receive.tail, simt::Order::kRelaxed);
#else
            // Acquire (3): what the sender wrote to left and the slot is seen after this.
            tail_ = seen = simt::load(&fifo_.control->receive.tail, simt::Order::kAcquire);
#endif
            return tail_ != step_;
        });
    }

    __host__ __device__ bool is_expected(std::uint64_t left) {
        const std::uint64_t sent = fifo_.control->receive.left[step_ % kFifoSteps];
        if (sent != left) {  // the sizes differ: the whole transfer has failed
            waiter_.fail({simt::Wait::kFifoMessage, ends_.rank, ends_.peer, left}, sent);
        }
        return sent == left;
    }

    simt::ThreadBlock block_;
    Fifo fifo_;
    FifoEnds ends_;
    FifoBlockState* state_;
    simt::Waiter waiter_;  // of thread 0
    std::uint64_t step_;
    std::uint64_t tail_;  // of thread 0: the last tail seen
};

}  // namespace symm
