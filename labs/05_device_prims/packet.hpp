#pragma once
/// \file
/// Data that carries its own flag: NCCL's LL protocol ("low latency").
///
///          first half          second half
///     +---------+---------+---------+---------+
///     | data 0  | flag    | data 1  | flag    |     16 bytes, one store
///     +---------+---------+---------+---------+
///
/// A signal costs two trips one after the other: the data, then a release that waits for it, then
/// the flag. A packet costs one: the reader polls the packet itself, and knows that both data words
/// have come because each lies in an 8-byte half with a flag. Half of the bytes are flags: the
/// price, and why this is for small sizes.
///
/// | who          | does                            | to what             | order             | why  |
/// |--------------|---------------------------------|---------------------|-------------------|------|
/// | the sender   | stores the packet with flag f   | the receiver's slot | relaxed, 16 bytes | nothing else rides on it |
/// | the receiver | polls until both flags are f    | its own slot        | relaxed, 16 bytes | each half arrives whole, the two need not arrive together |
///
/// Both flags are checked, since the model promises single elements of a vector access. That a data
/// word has come with its flag is that promise: the two are one 8-byte element.
///
/// Source: NCCL's src/device/prims_ll.h; ncclLLFifoLine in src/include/device.h.

#include <cstdint>

#include "common/simt/pack.hpp"
#include "common/simt/timeout.hpp"

namespace symm {

/// Sends eight bytes, as two words, under a flag that the slot has not held before.
__host__ __device__ inline void write_packet(simt::Pack16* slot, std::uint64_t data,
                                             std::uint32_t flag) {
    const std::uint64_t high = std::uint64_t{flag} << 32;
    simt::store_relaxed(slot, simt::Pack16{{(data & 0xffffffffU) | high, (data >> 32) | high}});
}

/// True when `packet` is one of `flag`'s, whole.
__host__ __device__ inline bool has_flag(const simt::Pack16& packet, std::uint32_t flag) {
    return static_cast<std::uint32_t>(packet.half[0] >> 32) == flag &&
           static_cast<std::uint32_t>(packet.half[1] >> 32) == flag;
}

/// A packet's eight bytes.
__host__ __device__ inline std::uint64_t data_of(const simt::Pack16& packet) {
    return (packet.half[0] & 0xffffffffU) | (packet.half[1] << 32);
}

/// Waits until the slot holds a packet with `waiting.expected` as its flag and returns its data
/// (what is there, when the wait gave up).
__host__ __device__ inline std::uint64_t read_packet(const simt::Timeout& timeout,
                                                     const simt::Pack16* slot,
                                                     const simt::Waiting& waiting) {
    simt::Pack16 packet{};
    timeout.until(waiting, [&](std::uint64_t& seen) {
        packet = simt::load_relaxed(slot);
        seen = packet.half[0] >> 32;
        return has_flag(packet, static_cast<std::uint32_t>(waiting.expected));
    });
    return data_of(packet);
}

}  // namespace symm
