#pragma once
/// \file
/// The protocol Simple: data first, then a flag for all of it. A step moves as many elements as a
/// slot holds, through lab 04's connection. README.md explains the direct forms.
///
/// | part        | who         | does                                        | ordered by             |
/// |-------------|-------------|---------------------------------------------|------------------------|
/// | receive     | thread 0    | waits for the tail                          | acquire, then a sync   |
/// | send        | thread 0    | waits for the head                          | acquire, then a sync   |
/// | move        | all threads | read source and slot, write output and slot | not accessed elsewhere |
/// | send        | thread 0    | posts the tail                              | a sync, then release   |
/// | receive     | thread 0    | posts the head                              | a sync, then release   |

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/ring/ring_ends.hpp"

namespace symm {

template <class T, class Group>
class Simple {
public:
    using Element = T;
    /// In the block's shared memory, one per object.
    struct Shared {
        EndState receive;
        EndState send;
    };

    /// All threads of the group construct it together, and make all calls together.
    __host__ __device__ Simple(const Group& group, const RingEnds& ends, const Reduction& reduction,
                               const DirectOutputs<T>& direct, Shared* shared)
        : group_(group),
          reduction_(reduction),
          direct_(direct),
          tracer_(ends.tracer),
          receiver_(group, ends.from_prev, {ends.rank, ends.prev, ends.timeout}, &shared->receive),
          sender_(group, ends.to_next, {ends.rank, ends.next, ends.timeout}, &shared->send) {}

    /// The most elements of a step, a whole number of packs of 16 bytes.
    static constexpr std::size_t step_elements(std::uint64_t slot_bytes) {
        return slot_bytes / sizeof(T);
    }

    /// Makes one step of `count` elements. Does nothing once a wait has given up.
    template <Move kMove>
    __host__ __device__ __forceinline__ void step(const T* source, T* output, std::size_t count) {
        const std::uint64_t bytes = count * sizeof(T);
        const bool direct = direct_.next != nullptr;
        const T* received = nullptr;
        T* sent = nullptr;
        if (kMove.receive && !gave_up_) {
            tracer_.record(TraceEvent::kWaitData, receiver_.step(), sender_.step());
            received = reinterpret_cast<const T*>(receiver_.acquire(bytes, bytes));
            gave_up_ = received == nullptr;
        }
        if (kMove.send && !gave_up_) {
            tracer_.record(TraceEvent::kWaitSpace, receiver_.step(), sender_.step());
            sent = reinterpret_cast<T*>(sender_.acquire());
            gave_up_ = sent == nullptr;
        }
        if (gave_up_) {
            return;
        }
        tracer_.record(TraceEvent::kMove, receiver_.step(), sender_.step(), kMove);
        if (kMove.sent_in_place && direct) {
            sent = direct_.at_next(output);
        }
        if (kMove.received_in_place && direct) {
            if constexpr (kMove.send) {
                move<Move{.send = true, .source = true}>(output, nullptr, nullptr, sent, count);
            }
        } else {
            move<kMove>(source, received, output, sent, count);
        }
        if constexpr (kMove.send) {
            sender_.post({StepMode::kNormal, 0, bytes, bytes});
        }
        if constexpr (kMove.receive) {
            receiver_.release();
        }
    }

    /// Ends the use of the channel in this kernel. (The counts of steps are stored already.)
    __host__ __device__ void finish() const { tracer_.end(receiver_.step(), sender_.step()); }

private:
    static constexpr std::size_t kPer = kPerPack<T, simt::Pack16>;
    // Packs in flight per thread, to hide latency: as many as registers allow.
    static constexpr std::size_t kAtOnce = sizeof(T) < 4 ? 2 : 4;

    // Whole packs if all addresses allow it, the other elements one by one.
    template <Move kMove>
    __host__ __device__ __forceinline__ void move(const T* source, const T* received, T* output,
                                                  T* sent, std::size_t count) const {
        const auto addresses =
            reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(received) |
            reinterpret_cast<std::uintptr_t>(output) | reinterpret_cast<std::uintptr_t>(sent);
        const std::size_t packs = addresses % sizeof(simt::Pack16) == 0 ? count / kPer : 0;
        const auto all = static_cast<std::size_t>(group_.size());
        std::size_t i = group_.thread_rank();
        for (; i + (kAtOnce - 1) * all < packs; i += kAtOnce * all) {
            simt::Pack16 pack[kAtOnce];
            SYMM_UNROLL
            for (std::size_t j = 0; j < kAtOnce; ++j) {
                pack[j] = load<kMove, simt::Pack16>(source, received, i + j * all);
            }
            SYMM_UNROLL
            for (std::size_t j = 0; j < kAtOnce; ++j) {
                store<kMove>(pack[j], output, sent, i + j * all);
            }
        }
        for (; i < packs; i += all) {
            store<kMove>(load<kMove, simt::Pack16>(source, received, i), output, sent, i);
        }
        for (i = packs * kPer + group_.thread_rank(); i < count; i += all) {
            store<kMove>(load<kMove, T>(source, received, i), output, sent, i);
        }
    }

    // `Pack` is a Pack16 or one element; `at` counts packs.
    template <Move kMove, class Pack>
    __host__ __device__ Pack load(const T* source, const T* received, std::size_t at) const {
        Pack pack{};
        if constexpr (kMove.source) {
            pack = reinterpret_cast<const Pack*>(source)[at];
        }
        if constexpr (kMove.receive) {
            const Pack came = reinterpret_cast<const Pack*>(received)[at];
            pack = kMove.source ? reduction_.combine<T>(pack, came) : came;
        }
        return kMove.completes() ? reduction_.finish<T>(pack) : pack;
    }

    template <Move kMove, class Pack>
    __host__ __device__ static void store(const Pack& pack, T* output, T* sent, std::size_t at) {
        if constexpr (kMove.output) {
            reinterpret_cast<Pack*>(output)[at] = pack;
        }
        if constexpr (kMove.send) {
            reinterpret_cast<Pack*>(sent)[at] = pack;
        }
    }

    Group group_;
    Reduction reduction_;
    DirectOutputs<T> direct_;
    Tracer tracer_;
    ConnectionReceiver<Group> receiver_;
    ConnectionSender<Group> sender_;
    bool gave_up_ = false;
};

}  // namespace symm
