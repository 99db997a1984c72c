#pragma once
/// \file
/// The part shared by LL and LL128: the steps of a channel whose data carries its own flags. There
/// is no tail. The head gives the sender its credits, as in lab 04's connection. The sender looks
/// at it only when it has used all the credits that it knows of: once at the start of a kernel,
/// then every eight steps if the receiver keeps up. README.md says what the last column rests on.
///
/// | step s: who | does                 | order   | what that rests on                                |
/// |-------------|----------------------|---------|---------------------------------------------------|
/// | sender      | thread 0 waits for head + 8 > s, then a sync | relaxed | the sender reads nothing else that the receiver wrote |
/// | receiver    | a sync, then thread 0 posts head = s + 1     | relaxed | each thread has loaded its data before the sync (LL together with the flags, LL128 after them) |

#include <cstdint>

#include "labs/05_device_prims/ring/ring_ends.hpp"

namespace symm {

template <class Group>
class LLSteps {
public:
    /// In the block's shared memory.
    struct Shared {
        std::uint64_t received;  ///< The two ends' counts at the start.
        std::uint64_t sent;
        std::uint64_t head;  ///< As thread 0 saw it.
        /// Set by a thread whose wait gave up. One word for even steps, one for odd steps, one for
        /// the wait for credit: a thread may be one sync ahead of another that still reads. The
        /// next write to the same word comes two syncs later.
        std::uint32_t gave_up[3];
        /// An earlier kernel gave up. Written before the first sync only.
        bool gave_up_before;
    };

    __host__ __device__ LLSteps(const Group& group, const RingEnds& ends, Shared* shared)
        : group_(group),
          ends_(ends),
          waiter_(ends.timeout),
          shared_(begun(group, ends, waiter_, shared)),
          received_(shared->received),
          sent_(shared->sent),
          head_(sent_ - kSteps),  // not read yet: assume that there is no credit
          gave_up_(shared->gave_up_before) {}

    __host__ __device__ const RingEnds& ends() const { return ends_; }
    __host__ __device__ simt::Waiter& waiter() { return waiter_; }
    /// The steps received, and sent, so far.
    __host__ __device__ std::uint64_t received() const { return received_; }
    __host__ __device__ std::uint64_t sent() const { return sent_; }

    /// Describes a wait for the data of the next step.
    __host__ __device__ simt::Waiting data(simt::Wait what) const {
        return {what,
                ends_.rank,
                ends_.prev,
                received_ + 1,
                static_cast<int>(ends_.from_prev.channel),
                received_};
    }

    /// Makes one step: waits for a credit, calls `transfer()`, and gives back the slot that was
    /// received. `transfer` returns whether all the data its thread waited for has arrived. All
    /// threads call it. Does nothing once a wait has given up.
    template <Move kMove, class Transfer>
    __host__ __device__ __forceinline__ void step(Transfer&& transfer) {
        if (kMove.send && !gave_up_) {
            wait_for_credit();
        }
        if (gave_up_) {
            return;
        }
        ends_.tracer.record(TraceEvent::kMove, received_, sent_, kMove);
        const bool arrived = transfer();
        if constexpr (kMove.send) {
            ++sent_;
        }
        if constexpr (kMove.receive) {
            give_back(arrived);
        }
    }

    /// Stores the counts of steps for the next kernel.
    __host__ __device__ void finish() const {
        ends_.tracer.end(received_, sent_);
        if (group_.thread_rank() == 0 && !gave_up_) {
            *ends_.from_prev.step = received_;
            *ends_.to_next.step = sent_;
        }
    }

private:
    __host__ __device__ static Shared* begun(const Group& group, const RingEnds& ends,
                                             const simt::Waiter& waiter, Shared* shared) {
        if (group.thread_rank() == 0) {
            *shared = {*ends.from_prev.step, *ends.to_next.step, 0, {}, waiter.gave_up()};
        }
        group.sync();
        return shared;
    }

    /// Waits until the next step may be sent. All threads call it.
    __host__ __device__ void wait_for_credit() {
        const std::uint64_t needed = sent_ + 1 - kSteps;
        if (head_.has_reached(needed)) {
            return;
        }
        ends_.tracer.record(TraceEvent::kWaitSpace, received_, sent_);
        if (group_.thread_rank() == 0) {
            if (!head_.wait_peer(waiter_, &ends_.to_next.send->head,
                                 {simt::Wait::kFifoSpace, ends_.rank, ends_.next, needed,
                                  static_cast<int>(ends_.to_next.channel), sent_})) {
                simt::store(&shared_->gave_up[2], 1U, simt::Order::kRelaxed);
            }
            shared_->head = head_.seen();
        }
        group_.sync();
        head_ = PeerStep<simt::Order::kRelaxed>(shared_->head);
        gave_up_ = simt::load(&shared_->gave_up[2], simt::Order::kRelaxed) != 0;
        group_.sync();  // no write to shared_->head before all have read it
    }

    /// Gives the step's slot back once all threads have read from it. All threads call it;
    /// `arrived` is false on those whose wait gave up.
    __host__ __device__ void give_back(bool arrived) {
        std::uint32_t* const gave_up = &shared_->gave_up[received_ % 2];
        if (!arrived) {
            simt::store(gave_up, 1U, simt::Order::kRelaxed);
        }
        group_.sync();
        gave_up_ = simt::load(gave_up, simt::Order::kRelaxed) != 0;
        ++received_;
        if (group_.thread_rank() == 0 && !gave_up_) {
            post_peer<simt::Order::kRelaxed>(&ends_.from_prev.send->head, received_);
        }
    }

    Group group_;
    RingEnds ends_;
    simt::Waiter waiter_;
    Shared* shared_;
    std::uint64_t received_;
    std::uint64_t sent_;
    PeerStep<simt::Order::kRelaxed> head_;  // known to all threads
    bool gave_up_;                          // the same on all threads
};

}  // namespace symm
