#pragma once
/// \file
/// Packs without flags: memory that still holds the *sentinel* has not been written yet.
///
/// A packet (one_shot.hpp) spends half of its bytes on flags. Here all 16 bytes of a pack are data,
/// and an 8-byte half has arrived when it is not the sentinel: 64 one bits. In every floating type
/// these are NaNs, which hardly any operation produces. A half of the input that does hold 64 one
/// bits (for example, memory filled with 0xff) is sent with its last element's sign flipped: still
/// NaN. For integers 64 one bits are a value like any other, so they cannot use this.

#include <cstddef>
#include <cstdint>

#include "common/simt/waiter.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

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

/// Polls `slot_of(p)` at once for all ranks p whose bit is set in `missing`, until all have arrived
/// in `arrived[p]`. False if the wait gave up.
template <int kMost, class SlotOf>
__host__ __device__ bool wait_for_packs(simt::Waiter& waiter, int rank, std::uint32_t epoch,
                                        unsigned missing, const SlotOf& slot_of,
                                        simt::Pack16 (&arrived)[kMost]) {
    simt::Waiting waiting{simt::Wait::kPacket, rank, rank, epoch};
    return missing == 0 || waiter.until(waiting, [&](std::uint64_t&) {
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {  // all loads first: their latencies overlap
            if ((missing >> p & 1U) != 0) {
                arrived[p] = simt::load_relaxed(slot_of(p));
            }
        }
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if ((missing >> p & 1U) != 0) {
                if (has_arrived(arrived[p])) {
                    missing &= ~(1U << p);
                } else {
                    waiting.peer = p;
                }
            }
        }
        return missing == 0;
    });
}

/// Writes the sentinel back.
__host__ __device__ inline void clear(simt::Pack16* slot) {
    simt::store_relaxed(slot, simt::Pack16{{kSentinel, kSentinel}});
}

}  // namespace symm
