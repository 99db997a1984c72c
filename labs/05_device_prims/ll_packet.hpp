#pragma once
/// \file
/// Data that carries its own flag: NCCL's LL protocol ("low latency"). A packet is one store of 16
/// bytes, so it takes one trip, where data and a signal take two. README.md has the reasons.
///
///     | data 0 | flag | data 1 | flag |
///
/// | who          | does                            | to what             | order             | why  |
/// |--------------|---------------------------------|---------------------|-------------------|------|
/// | the sender   | stores the packet with flag f   | the receiver's slot | relaxed, 16 bytes | no other data depends on it |
/// | the receiver | polls until both flags are f    | its own slot        | relaxed, 16 bytes | each half arrives whole, but the halves may arrive apart |

#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/waiter.hpp"

namespace symm {

/// The sixteen bytes. Memory that was zeroed holds packets with flag 0.
struct [[gnu::may_alias]] alignas(16) Packet {
    std::uint32_t data0;
    std::uint32_t flag0;
    std::uint32_t data1;
    std::uint32_t flag1;

    __host__ __device__ bool has_flag(std::uint32_t flag) const {
        return flag0 == flag && flag1 == flag;
    }
    __host__ __device__ std::uint64_t data() const { return data0 | std::uint64_t{data1} << 32; }
};

/// Sends eight bytes, as two words, each with `flag`, which the slot must not hold yet. `kOrder` is
/// kRelaxed or kReleasedByStream.
template <simt::Order kOrder = simt::Order::kRelaxed>
__host__ __device__ void write_packet(Packet* slot, std::uint64_t data, std::uint32_t flag) {
    const std::uint64_t high = std::uint64_t{flag} << 32;
    simt::store_relaxed<kOrder>(reinterpret_cast<simt::Pack16*>(slot),
                                {{(data & 0xffffffffU) | high, (data >> 32) | high}});
}

/// Reads a slot that a peer may be writing. `kOrder` is kRelaxed or kAcquire.
template <simt::Order kOrder = simt::Order::kRelaxed>
__host__ __device__ Packet load_packet(const Packet* slot) {
    static_assert(kOrder == simt::Order::kRelaxed || kOrder == simt::Order::kAcquire);
    const auto* const from = reinterpret_cast<const simt::Pack16*>(slot);
    const simt::Pack16 pack =
        kOrder == simt::Order::kAcquire ? simt::load_acquire(from) : simt::load_relaxed(from);
    return {
        static_cast<std::uint32_t>(pack.half[0]), static_cast<std::uint32_t>(pack.half[0] >> 32),
        static_cast<std::uint32_t>(pack.half[1]), static_cast<std::uint32_t>(pack.half[1] >> 32)};
}

/// Waits until the slot holds a packet with `waiting.expected` as its flag, and reads its data.
/// False when the wait gave up.
__host__ __device__ inline bool read_packet(simt::Waiter& waiter, const Packet* slot,
                                            const simt::Waiting& waiting, std::uint64_t& data) {
    return waiter.until(waiting, [&](std::uint64_t& seen) {
        const Packet packet = load_packet(slot);
        data = packet.data();
        seen = packet.flag0;
        return packet.has_flag(static_cast<std::uint32_t>(waiting.expected));
    });
}

}  // namespace symm
