#pragma once
/// \file
/// Data that carries its own flag: NCCL's LL protocol ("low latency").
///
///          first half          second half
///     +---------+---------+---------+---------+
///     | data 0  | flag    | data 1  | flag    |     16 bytes, one store
///     +---------+---------+---------+---------+
///
/// A signal takes two trips, one after the other: first the data, then, when the release knows that
/// the data has arrived, the flag. A packet takes one: the receiver polls the packet itself. It
/// knows that both data words are there when it sees both flags, since data and flag of one half
/// arrive together. But half of the bytes are flags, so packets are for small sizes.
///
/// | who          | does                            | to what             | order             | why  |
/// |--------------|---------------------------------|---------------------|-------------------|------|
/// | the sender   | stores the packet with flag f   | the receiver's slot | relaxed, 16 bytes | no other data depends on it |
/// | the receiver | polls until both flags are f    | its own slot        | relaxed, 16 bytes | each half arrives whole, but the halves may arrive apart |
///
/// Both flags are checked: the memory model promises that each 8-byte element of a 16-byte access
/// arrives whole, not that both arrive together.
///
/// Source: NCCL's src/device/prims_ll.h; ncclLLFifoLine in src/include/device.h.

#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

/// Sends eight bytes, as two words, each with `flag`, which the slot must not hold yet. `kOrder` is
/// kRelaxed or kReleasedByStream.
template <simt::Order kOrder = simt::Order::kRelaxed>
__host__ __device__ void write_packet(simt::Pack16* slot, std::uint64_t data, std::uint32_t flag) {
    const std::uint64_t high = std::uint64_t{flag} << 32;
    simt::store_relaxed<kOrder>(slot,
                                simt::Pack16{{(data & 0xffffffffU) | high, (data >> 32) | high}});
}

/// True when both halves of `packet` have the flag `flag`.
__host__ __device__ inline bool has_flag(const simt::Pack16& packet, std::uint32_t flag) {
    return static_cast<std::uint32_t>(packet.half[0] >> 32) == flag &&
           static_cast<std::uint32_t>(packet.half[1] >> 32) == flag;
}

/// A packet's eight bytes.
__host__ __device__ inline std::uint64_t data_of(const simt::Pack16& packet) {
    return (packet.half[0] & 0xffffffffU) | (packet.half[1] << 32);
}

/// Waits until the slot holds a packet with `waiting.expected` as its flag, and reads its data.
/// False when the wait gave up.
__host__ __device__ inline bool read_packet(simt::Waiter& waiter, const simt::Pack16* slot,
                                            const simt::Waiting& waiting, std::uint64_t& data) {
    return waiter.until(waiting, [&](std::uint64_t& seen) {
        const simt::Pack16 packet = simt::load_relaxed(slot);
        data = data_of(packet);
        seen = packet.half[0] >> 32;
        return has_flag(packet, static_cast<std::uint32_t>(waiting.expected));
    });
}

}  // namespace symm
