#pragma once
/// \file
/// Accesses of 16 bytes: the widest a thread makes at once.
///
/// `load_relaxed` and `store_relaxed` are for words that another GPU polls while they are written.
/// PTX promises that each 8-byte element of such an access arrives whole, never that the 16 bytes
/// arrive together, so a reader has to check both elements (PTX ISA, memory consistency model,
/// "Vector Data-types"). The host version promises the same: it makes two relaxed accesses of 8
/// bytes, with SYMM_EMU_TORN_PACKS=1 in either order and with a pause in between (torn_pack.hpp).
/// Data that is ordered by flags is read and written plainly, by assignment of a Pack16. For
/// unaligned memory, and the rest after the last whole pack, see lab 05's elements.hpp.

#include <cuda_runtime.h>

#include <cstdint>

#include "common/simt/atomic.hpp"
#include "common/simt/torn_pack.hpp"
#ifdef SYMM_EXPLORE
#include "common/explore/await.hpp"
#endif

/// Before a loop, asks nvcc to unroll it. Empty for the host compiler, which does not know this
/// pragma.
#ifdef __CUDA_ARCH__
#define SYMM_UNROLL _Pragma("unroll")
#else
#define SYMM_UNROLL
#endif

namespace symm::simt {

/// Sixteen bytes, aligned to sixteen, of whatever type (hence may_alias).
struct [[gnu::may_alias]] alignas(16) Pack16 {
    std::uint64_t half[2];
};

/// Eight bytes of whatever type.
struct [[gnu::may_alias]] alignas(8) Pack8 {
    std::uint64_t bits;
};

/// Reads sixteen bytes that another GPU may be writing.
__host__ __device__ inline Pack16 load_relaxed(const Pack16* pointer) {
    Pack16 value;
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                      : "=l"(value.half[0]), "=l"(value.half[1])
                      : "l"(pointer)
                      : "memory");),
        (access_halves([&](int i) { value.half[i] = load(&pointer->half[i], Order::kRelaxed); });))
    return value;
}

/// For each half of load_acquire() on the host. The halves are unordered: the explorer acquires
/// both after both loads.
#ifdef SYMM_EXPLORE
inline constexpr Order kAcquireHalf = Order::kRelaxed;
#else
inline constexpr Order kAcquireHalf = Order::kAcquire;
#endif

/// The same as an acquire: its thread's later accesses stay after it.
__host__ __device__ inline Pack16 load_acquire(const Pack16* pointer) {
    Pack16 value;
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                      : "=l"(value.half[0]), "=l"(value.half[1])
                      : "l"(pointer)
                      : "memory");),
        (access_halves([&](int i) { value.half[i] = load(&pointer->half[i], kAcquireHalf); });))
#ifdef SYMM_EXPLORE
    explore::acquire_both();
#endif
    return value;
}

/// Writes sixteen bytes that another GPU may be polling. `kOrder` is kRelaxed or
/// kReleasedByStream, which are the same on a GPU.
template <Order kOrder = Order::kRelaxed>
__host__ __device__ void store_relaxed(Pack16* pointer, const Pack16& value) {
    static_assert(kOrder == Order::kRelaxed || kOrder == Order::kReleasedByStream);
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(pointer),
                      "l"(value.half[0]), "l"(value.half[1])
                      : "memory");),
        (access_halves([&](int i) { store(&pointer->half[i], value.half[i], kOrder); });))
}

}  // namespace symm::simt
