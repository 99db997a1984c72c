#pragma once
/// \file
/// Packs without flags: memory that still holds the *sentinel* has not been written yet.
///
/// A packet (packets.hpp) spends half of its bytes on flags. Here all 16 bytes of a pack are data,
/// and an 8-byte half has arrived when it is not the sentinel: 64 one bits. In every floating type
/// these are NaNs, which hardly any operation produces. A half of the input that does hold 64 one
/// bits (for example, memory filled with 0xff) is sent with its last element's sign flipped: still
/// NaN. For integers 64 one bits are a value like any other, so they cannot use this.

#include <cstddef>
#include <cstdint>

#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"

namespace symm {

inline constexpr std::uint64_t kSentinel = ~std::uint64_t{0};

/// The pack with any sentinel replaced, ready to send.
__host__ __device__ inline simt::Pack16 without_sentinel(simt::Pack16 pack) {
    for (std::uint64_t& half : pack.half) {
        half = half == kSentinel ? half >> 1 : half;  // flips the last element's sign
    }
    return pack;
}

/// Pack i of `count` elements, with any sentinel replaced.
template <class T>
__host__ __device__ simt::Pack16 load_to_send(const T* from, std::size_t count, std::size_t i) {
    const std::size_t at = i * kPerPack<T, simt::Pack16>;
    const auto pack = load_elements<simt::Pack16>(from + at, count - at);
    return without_sentinel(pack);
}

__host__ __device__ inline bool has_arrived(const simt::Pack16& pack) {
    return pack.half[0] != kSentinel && pack.half[1] != kSentinel;
}

/// Writes the sentinel back.
__host__ __device__ inline void clear(simt::Pack16* slot) {
    simt::store_relaxed(slot, simt::Pack16{{kSentinel, kSentinel}});
}

/// The format of a mailbox of such packs, filled with the sentinel before the first use. A slot
/// that a call does not use holds the sentinel before and after it, so calls may have different
/// sizes.
struct SentinelPacks {
    using Data = simt::Pack16;
    using Loaded = simt::Pack16;
    static constexpr bool kHasFlags = false;

    __host__ __device__ static void store(simt::Pack16* slot, const Data& data, std::uint32_t) {
        simt::store_relaxed(slot, data);
    }
    __host__ __device__ static Loaded load(const simt::Pack16* slot) {
        return simt::load_relaxed(slot);
    }
    __host__ __device__ static bool has_arrived(const Loaded& pack, std::uint32_t) {
        return symm::has_arrived(pack);
    }
    __host__ __device__ static void clear(simt::Pack16* slot) { symm::clear(slot); }
};

}  // namespace symm
