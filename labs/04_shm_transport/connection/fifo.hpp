#pragma once
/// \file
/// A connection from one GPU to another: one or more channels, each a FIFO of eight slots in memory
/// that both can reach. Step s uses slot s mod 8; `fifo[s mod 8]` says how much data it has, and
/// where. The lab's page explains the orders (1) to (4), and why a channel cannot deadlock.
///
/// | step s: side    | waits for    | order       | then does                   | then stores  | order       |
/// |-----------------|--------------|-------------|-----------------------------|--------------|-------------|
/// | fill: sender    | head + 8 > s | acquire (1) | writes the slot, fifo entry | tail = s + 1 | release (2) |
/// | empty: receiver | tail > s     | acquire (3) | reads fifo entry, the slot  | head = s + 1 | release (4) |
///
/// Source: NCCL's `waitPeer` and `postPeer` in src/device/prims_simple.h.

#include <cstddef>
#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/waiter.hpp"
#include "labs/04_shm_transport/connection/fifo_memory.hpp"
#include "labs/04_shm_transport/connection/peer_step.hpp"

namespace symm {

/// The orders of the table.
inline constexpr simt::Order kWaitHead = simt::Order::kAcquire;  ///< (1)
inline constexpr simt::Order kPostTail = simt::Order::kRelease;  ///< (2)
inline constexpr simt::Order kWaitTail = simt::Order::kAcquire;  ///< (3)
inline constexpr simt::Order kPostHead = simt::Order::kRelease;  ///< (4)

/// The ranks at the two ends, and how long a wait may last.
struct Ends {
    int rank;
    int peer;
    const simt::Timeout& timeout;  ///< The kernel's parameter.
};

/// Values that thread 0 passes to the rest of its group, in the block's shared memory. Each
/// ConnectionSender and ConnectionReceiver of a block has its own.
struct EndState {
    std::uint64_t step;
    std::byte* data;
};

/// The first step of an end, for all threads of its group.
template <class Group>
__host__ __device__ std::uint64_t first_step(const Group& group, const ConnectionEnd& end,
                                             EndState* state) {
    if (group.thread_rank() == 0) {
        state->step = *end.step;
    }
    group.sync();
    return state->step;
}

/// The sending end of a channel. Every thread of the one group that serves it has one. A group is a
/// simt::ThreadBlock, or has its `thread_rank()` and `sync()`.
template <class Group>
class ConnectionSender {
public:
    /// All threads of the group construct it together. `state` is in the block's shared memory, and
    /// no other end uses it.
    __host__ __device__ ConnectionSender(const Group& group, const ConnectionEnd& end,
                                         const Ends& ends, EndState* state)
        : group_(group),
          end_(end),
          ends_(ends),
          state_(state),
          waiter_(ends.timeout),
          step_(first_step(group, end, state)),
          head_(step_ - kSteps) {}  // not read yet: assume that there is no credit

    __host__ __device__ std::uint64_t step() const { return step_; }

    /// Waits until the next slot is free. All threads call it. All get the slot, or all get null
    /// if the wait timed out: then stop, and do not post.
    __host__ __device__ std::byte* acquire() {
        if (group_.thread_rank() == 0) {
            state_->data = wait_for_head(step_ + 1 - kSteps) ? end_.slot(step_) : nullptr;
        }
        group_.sync();
        return state_->data;
    }

    /// Hands the step to the receiver; `entry` describes it.
    __host__ __device__ void post(const FifoEntry& entry) {
        group_.sync();
        if (group_.thread_rank() == 0) {
            end_.receive->fifo[step_ % kSteps] = entry;
            // Release (2): the entry and the slot, which all threads wrote before the sync, come
            // first.
            post_peer<kPostTail>(&end_.receive->tail, step_ + 1);
            *end_.step = step_ + 1;
        }
        ++step_;
    }

    /// Waits until the receiver has emptied all steps: data sent in offset mode may then be
    /// overwritten. All threads call it, as their last call. False if the wait timed out.
    __host__ __device__ bool drained() {
        if (group_.thread_rank() == 0) {
            state_->data = wait_for_head(step_) ? end_.slots : nullptr;
        }
        group_.sync();
        return state_->data != nullptr;
    }

private:
    __host__ __device__ bool wait_for_head(std::uint64_t needed) {
        // Acquire (1): the receiver has read the slot before this side writes to it.
        return head_.wait_peer(waiter_, &end_.send->head,
                               {simt::Wait::kFifoSpace, ends_.rank, ends_.peer, needed,
                                static_cast<int>(end_.channel), step_});
    }

    Group group_;
    ConnectionEnd end_;
    Ends ends_;
    EndState* state_;
    simt::Waiter waiter_;  // used by thread 0 alone
    std::uint64_t step_;
    PeerStep<kWaitHead> head_;  // used by thread 0 alone
};

/// The receiving end of a channel. Every thread of the one group that serves it has one.
template <class Group>
class ConnectionReceiver {
public:
    /// As ConnectionSender's constructor.
    __host__ __device__ ConnectionReceiver(const Group& group, const ConnectionEnd& end,
                                           const Ends& ends, EndState* state)
        : group_(group),
          end_(end),
          ends_(ends),
          state_(state),
          waiter_(ends.timeout),
          step_(first_step(group, end, state)),
          tail_(step_) {}  // not read yet: assume that the FIFO is empty

    __host__ __device__ std::uint64_t step() const { return step_; }

    /// Waits for the next step, with `size` bytes of a message of which `left` remain. All threads
    /// call it. All get the data, or all get null if the wait timed out, the sender passed other
    /// numbers, or its entry points outside the buffer: then stop, and do not release.
    __host__ __device__ const std::byte* acquire(std::uint64_t size, std::uint64_t left) {
        if (group_.thread_rank() == 0) {
            state_->data = wait_for_tail() ? checked_data(size, left) : nullptr;
        }
        group_.sync();
        return state_->data;
    }

    /// Gives the emptied slot back to the sender, as a credit.
    __host__ __device__ void release() {
        group_.sync();
        if (group_.thread_rank() == 0) {
            // Release (4): the loads of the slot, by all threads before the sync, come first.
            post_peer<kPostHead>(&end_.send->head, step_ + 1);
            *end_.step = step_ + 1;
        }
        ++step_;
    }

private:
    __host__ __device__ bool wait_for_tail() {
        // Acquire (3): after this, the sender's writes to entry and slot are visible.
        return tail_.wait_peer(waiter_, &end_.receive->tail,
                               {simt::Wait::kFifoData, ends_.rank, ends_.peer, step_ + 1,
                                static_cast<int>(end_.channel), step_});
    }

    __host__ __device__ std::byte* checked_data(std::uint64_t size, std::uint64_t left) {
        const FifoEntry entry = FifoEntry::read(end_.receive->fifo[step_ % kSteps]);
        if (entry.left != left || entry.size != size) {  // the whole transfer has failed
            waiter_.fail({simt::Wait::kFifoMessage, ends_.rank, ends_.peer, left}, entry.left);
            return nullptr;
        }
        std::byte* const data = end_.data(step_, entry);
        if (data == nullptr) {
            waiter_.fail({simt::Wait::kFifoEntry, ends_.rank, ends_.peer, end_.buffer_bytes},
                         entry.offset);
        }
        return data;
    }

    Group group_;
    ConnectionEnd end_;
    Ends ends_;
    EndState* state_;
    simt::Waiter waiter_;  // used by thread 0 alone
    std::uint64_t step_;
    PeerStep<kWaitTail> tail_;  // used by thread 0 alone
};

}  // namespace symm
