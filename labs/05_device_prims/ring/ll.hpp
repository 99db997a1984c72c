#pragma once
/// \file
/// The protocol LL ("low latency"): every 8 bytes of data carry their own flags (ll_packet.hpp). A
/// slot holds packets. README.md proves that none is overwritten before it is read.
///
/// | step s: who | waits for                   | order   | then does                             |
/// |-------------|-----------------------------|---------|---------------------------------------|
/// | sender      | a credit (ll_steps.hpp)     | relaxed | stores packets with flag s + 1, relaxed |
/// | receiver    | both flags of a packet      | relaxed | uses its 8 bytes; gives the slot back (ll_steps.hpp) |
///
/// Source: NCCL's src/device/prims_ll.h (and NCCL_LL_CLEAN_MASK in device.h).

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/ll_packet.hpp"
#include "labs/05_device_prims/ring/ll_steps.hpp"

namespace symm {

template <class T, class Group>
class LL {
public:
    using Element = T;
    using Shared = typename LLSteps<Group>::Shared;

    /// All threads of the group construct it together, and make all calls together. LL has no
    /// direct forms: the user's output has no room for flags.
    __host__ __device__ LL(const Group& group, const RingEnds& ends, const Reduction& reduction,
                           const DirectOutputs<T>&, Shared* shared)
        : group_(group), reduction_(reduction), steps_(group, ends, shared) {}

    /// The most elements of a step, a whole number of packets.
    static constexpr std::size_t step_elements(std::uint64_t slot_bytes) {
        return slot_bytes / 2 / sizeof(T);
    }

    /// Makes one step of `count` elements. Does nothing once a wait has given up.
    template <Move kMove>
    __host__ __device__ __forceinline__ void step(const T* source, T* output, std::size_t count) {
        steps_.template step<kMove>([&] { return transfer<kMove>(source, output, count); });
    }

    /// Ends the use of the channel in this kernel.
    __host__ __device__ void finish() const { steps_.finish(); }

private:
    static constexpr std::size_t kPer = kPerPack<T, simt::Pack8>;

    // A step between the wait for credit and the return of the slot.
    template <Move kMove>
    __host__ __device__ __forceinline__ bool transfer(const T* source, T* output,
                                                      std::size_t count) {
        const std::size_t packets = (count + kPer - 1) / kPer;
        const auto* in =
            reinterpret_cast<const Packet*>(steps_.ends().from_prev.slot(steps_.received()));
        auto* out = reinterpret_cast<Packet*>(steps_.ends().to_next.slot(steps_.sent()));
        const auto flag = static_cast<std::uint32_t>(steps_.sent() + 1);
        bool arrived = true;
        for (std::size_t i = group_.thread_rank(); arrived && i < packets; i += group_.size()) {
            const std::size_t at = i * kPer;
            simt::Pack8 pack{};
            if constexpr (kMove.source) {
                pack = load_elements<simt::Pack8>(source + at, count - at);
            }
            if constexpr (kMove.receive) {
                simt::Pack8 came{};
                arrived = read_packet(steps_.waiter(), in + i, expected(), came.bits);
                pack = kMove.source ? reduction_.combine<T>(pack, came) : came;
            }
            if constexpr (kMove.completes()) {
                pack = reduction_.finish<T>(pack);
            }
            if (kMove.output && arrived) {
                store_elements(output + at, pack, count - at);
            }
            if (kMove.send && arrived) {
                write_packet(out + i, pack.bits, flag);
            }
        }
        if (kMove.send && overwrites_whole_slot()) {
            const std::size_t all = steps_.ends().to_next.slot_bytes / sizeof(Packet);
            for (std::size_t i = packets + group_.thread_rank(); i < all; i += group_.size()) {
                write_packet(out + i, 0, flag);
            }
        }
        return arrived;
    }

    __host__ __device__ simt::Waiting expected() const {
        simt::Waiting waiting = steps_.data(simt::Wait::kPacket);
        waiting.expected = static_cast<std::uint32_t>(waiting.expected);  // 32 bits, like flags
        return waiting;
    }

    // In the last steps before flags repeat.
    __host__ __device__ bool overwrites_whole_slot() const {
        constexpr std::uint64_t kHalfOfFlags = std::uint64_t{1} << 31;
        return steps_.sent() % kHalfOfFlags >= kHalfOfFlags - kSteps;
    }

    Group group_;
    Reduction reduction_;
    LLSteps<Group> steps_;
};

}  // namespace symm
