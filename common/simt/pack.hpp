#pragma once
/// \file
/// Accesses of 16 bytes: the widest a thread makes at once.
///
/// `load_relaxed` and `store_relaxed` are for words that another GPU polls while they are written.
/// PTX promises that each 8-byte element of such an access arrives whole, never that the 16 bytes
/// arrive together, so a reader has to check both elements (PTX ISA, memory consistency model,
/// "Vector Data-types"). The host version promises the same: it makes two relaxed accesses of 8
/// bytes. With SYMM_EMU_TORN_PACKS=1 it makes them in either order, with a pause in between. No GPU
/// that we know does that, and a host thread does it too rarely for a test: without the variable, a
/// reader that checks the flag of one half only would pass.
///
/// Data that is ordered by flags is read and written plainly, by assignment of a Pack16. For
/// unaligned memory, and the rest after the last whole pack, see lab 05's elements.hpp.

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "common/simt/atomic.hpp"

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

/// Whether the host's accesses are torn. Set before kernels run.
inline std::atomic<bool> torn_packs{false};

namespace detail {
/// Each thread has its own random sequence; the constants are Knuth's (MMIX).
SYMM_UNSEEN inline std::uint64_t next_random() {
    thread_local std::uint64_t state = std::hash<std::thread::id>{}(std::this_thread::get_id());
    return state = state * 6364136223846793005U + 1442695040888963407U;
}

/// Calls `access(0)` and `access(1)`, each of which makes the access to one half.
template <class Access>
void access_halves(const Access& access) {
    const bool torn = torn_packs.load(std::memory_order_relaxed);
    const std::uint64_t random = torn ? next_random() : 0;
    const int first = static_cast<int>(random >> 63);
    access(first);
    if (torn && (random >> 61) % 4 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // other blocks run meanwhile
        back_off(0);  // and other threads of this one
    }
    access(1 - first);
}
}  // namespace detail

/// Reads sixteen bytes that another GPU may be writing.
__host__ __device__ inline Pack16 load_relaxed(const Pack16* pointer) {
    Pack16 value;
    NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                      (asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                                    : "=l"(value.half[0]), "=l"(value.half[1])
                                    : "l"(pointer)
                                    : "memory");),
                      (detail::access_halves([&](int i) {
                           value.half[i] = load(&pointer->half[i], Order::kRelaxed);
                       });))
    return value;
}

/// The same as an acquire: its thread's later accesses stay after it.
__host__ __device__ inline Pack16 load_acquire(const Pack16* pointer) {
    Pack16 value;
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                      : "=l"(value.half[0]), "=l"(value.half[1])
                      : "l"(pointer)
                      : "memory");),
        (constexpr Order order = kExplored ? Order::kRelaxed : Order::kAcquire;
         detail::access_halves([&](int i) { value.half[i] = load(&pointer->half[i], order); });
         if constexpr (kExplored) { acquire_both(); }))
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
        (detail::access_halves([&](int i) { store(&pointer->half[i], value.half[i], kOrder); });))
}

}  // namespace symm::simt
