#pragma once
/// \file
/// Accesses of the memory of all devices behind one address (a multicast address), which the switch
/// between the GPUs makes: it adds up what it loads, or stores to all. On emulated GPUs the thread
/// itself reaches each device's memory, one after the other, and begins with any of them: a switch
/// promises no order, so sums of floating-point numbers may have other bits each time.
///
/// **Not run on a GPU by us.** cuMulticastCreate can disable GPUs for their other users.
///
/// What an instruction knows (PTX ISA for sm_90, as ptxas accepts it):
///
/// | elements | add | min, max | in one instruction |
/// |---|---|---|---|
/// | half, bfloat16 | yes, here in float (`.acc::f32`) | yes | eight |
/// | float | yes | no | four |
/// | double | yes | no | one |
/// | integers of 32 and 64 bits | yes | yes | one |
///
/// PTX knows more (bits and, or, xor; bulk copies; 8-bit floats on newer GPUs), but no products and
/// no 8-bit integers. It does not say what becomes of NaNs, nor of zeros of both signs in a
/// minimum.
///
/// Each device's memory is accessed for itself: that a store has come to one device says nothing of
/// another. Loads and stores are relaxed: accesses of 8 bytes here; on a GPU, loads of elements,
/// and stores of 4 bytes. add_to_all() releases. A plain access of a multicast address is
/// undefined; on an emulated GPU it faults.
/// The address of a device's own memory is an *alias*. PTX orders accesses by two aliases only if
/// there is a fence_alias() between them, besides the release and acquire: before the release, or
/// after the acquire. An emulated GPU does not notice where one is missing; the explorer does.
///
/// Source: PTX ISA 9, `multimem.ld_reduce`, `multimem.st`, `multimem.red`, `fence.proxy`, and
/// "Proxy"; CUDA Programming Guide, "Multicast Memory Sharing".

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"

namespace symm::simt {

/// What a switch makes of the values that it loads.
enum class SwitchOp : std::uint8_t { kAdd, kMin, kMax };

template <class T>
inline constexpr bool kIsShort = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// Whether a switch can reduce elements of this type.
template <class T>
__host__ __device__ constexpr bool can_switch(SwitchOp op) {
    return kIsShort<T> || (std::is_integral_v<T> && sizeof(T) >= 4) ||
           (std::is_floating_point_v<T> && op == SwitchOp::kAdd);
}

namespace detail {

/// `all` and one more device's element. Of short types, sums are kept in float.
template <SwitchOp kOp, class T>
T with_next(T all, T next) {
    if constexpr (kOp == SwitchOp::kAdd) {
        return all + next;
    } else {
        return (kOp == SwitchOp::kMin) == (next < all) ? next : all;
    }
}

/// Calls `use(copy)` for the memory of each device.
template <class Use>
void for_copies(const ThreadBlock& block, const void* address, SwitchAccess access,
                const Use& use) {
    const MulticastCopies copies = block.host().copies_of(address, access);
    if (copies.count == 0) {
        std::fprintf(stderr,
                     "there is no multicast object, or not each device has bound memory, at %p\n",
                     address);
        std::abort();
    }
    if constexpr (kExplored) {
        through_multicast(true);
    }
    for (unsigned k = 0; k < copies.count; ++k) {
        use(copies.at[k]);
    }
    if constexpr (kExplored) {
        through_multicast(false);
    }
}

/// The pack of all devices, on the host.
template <class T, SwitchOp kOp>
Pack16 host_load_reduce(const ThreadBlock& block, const Pack16* address) {
    constexpr std::size_t kCount = sizeof(Pack16) / sizeof(T);
    using Sum = std::conditional_t<kIsShort<T>, float, T>;
    Sum sums[kCount];
    bool is_first = true;
    for_copies(block, address, SwitchAccess::kLoad, [&](const void* copy) {
        const Pack16 pack = load_relaxed(static_cast<const Pack16*>(copy));
        T elements[kCount];
        std::memcpy(static_cast<void*>(elements), &pack, sizeof(pack));
        for (std::size_t i = 0; i < kCount; ++i) {
            const auto next = static_cast<Sum>(elements[i]);
            sums[i] = is_first ? next : with_next<kOp>(sums[i], next);
        }
        is_first = false;
    });
    T elements[kCount];
    for (std::size_t i = 0; i < kCount; ++i) {
        elements[i] = static_cast<T>(sums[i]);
    }
    Pack16 result;
    std::memcpy(&result, elements, sizeof(result));
    return result;
}

#ifdef __CUDA_ARCH__
// The instruction's name is a part of its text, so each type and operation has its own line.
#define SYMM_SWITCH_FOUR(name, kind, of)                                                      \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." name " {%0, %1, %2, %3}, [%4];"     \
                 : "=" kind((of)[0]), "=" kind((of)[1]), "=" kind((of)[2]), "=" kind((of)[3]) \
                 : "l"(address)                                                               \
                 : "memory")
#define SYMM_SWITCH_ONE(name, kind, to, from)                               \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." name " %0, [%1];" \
                 : "=" kind(to)                                             \
                 : "l"(from)                                                \
                 : "memory")

/// The same on a GPU.
template <class T, SwitchOp kOp>
__device__ Pack16 load_reduce(const Pack16* address) {
    constexpr bool kAdds = kOp == SwitchOp::kAdd, kIsMin = kOp == SwitchOp::kMin;
    Pack16 pack;
    if constexpr (kIsShort<T>) {
        auto* const four = reinterpret_cast<std::uint32_t*>(&pack);
        if constexpr (std::is_same_v<T, __half>) {
            if constexpr (kAdds) {
                SYMM_SWITCH_FOUR("add.acc::f32.v4.f16x2", "r", four);
            } else if constexpr (kIsMin) {
                SYMM_SWITCH_FOUR("min.v4.f16x2", "r", four);
            } else {
                SYMM_SWITCH_FOUR("max.v4.f16x2", "r", four);
            }
        } else if constexpr (kAdds) {
            SYMM_SWITCH_FOUR("add.acc::f32.v4.bf16x2", "r", four);
        } else if constexpr (kIsMin) {
            SYMM_SWITCH_FOUR("min.v4.bf16x2", "r", four);
        } else {
            SYMM_SWITCH_FOUR("max.v4.bf16x2", "r", four);
        }
    } else if constexpr (std::is_same_v<T, float>) {
        SYMM_SWITCH_FOUR("add.v4.f32", "f", reinterpret_cast<float*>(&pack));
    } else {
        const auto* const from = reinterpret_cast<const T*>(address);
        T to[sizeof(Pack16) / sizeof(T)];
        SYMM_UNROLL
        for (std::size_t i = 0; i < sizeof(Pack16) / sizeof(T); ++i) {
            if constexpr (std::is_same_v<T, double>) {
                SYMM_SWITCH_ONE("add.f64", "d", to[i], from + i);
            } else if constexpr (sizeof(T) == 8 && kAdds) {  // of signed ones, too
                SYMM_SWITCH_ONE("add.u64", "l", to[i], from + i);
            } else if constexpr (sizeof(T) == 8 && std::is_signed_v<T>) {
                if constexpr (kIsMin) {
                    SYMM_SWITCH_ONE("min.s64", "l", to[i], from + i);
                } else {
                    SYMM_SWITCH_ONE("max.s64", "l", to[i], from + i);
                }
            } else if constexpr (sizeof(T) == 8) {
                if constexpr (kIsMin) {
                    SYMM_SWITCH_ONE("min.u64", "l", to[i], from + i);
                } else {
                    SYMM_SWITCH_ONE("max.u64", "l", to[i], from + i);
                }
            } else if constexpr (kAdds) {
                SYMM_SWITCH_ONE("add.u32", "r", to[i], from + i);
            } else if constexpr (std::is_signed_v<T>) {
                if constexpr (kIsMin) {
                    SYMM_SWITCH_ONE("min.s32", "r", to[i], from + i);
                } else {
                    SYMM_SWITCH_ONE("max.s32", "r", to[i], from + i);
                }
            } else if constexpr (kIsMin) {
                SYMM_SWITCH_ONE("min.u32", "r", to[i], from + i);
            } else {
                SYMM_SWITCH_ONE("max.u32", "r", to[i], from + i);
            }
        }
        memcpy(&pack, to, sizeof(pack));
    }
    return pack;
}
#undef SYMM_SWITCH_FOUR
#undef SYMM_SWITCH_ONE
#endif

}  // namespace detail

/// What the switch makes of the packs of all devices at a multicast address: `multimem.ld_reduce`.
template <class T, SwitchOp kOp>
__host__ __device__ Pack16 load_reduce([[maybe_unused]] const ThreadBlock& block,
                                       const Pack16* address) {
    static_assert(can_switch<T>(kOp));
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (return detail::load_reduce<T, kOp>(address);),
                      (return detail::host_load_reduce<T, kOp>(block, address);))
}

/// Stores a pack into the memory of all devices: `multimem.st`, relaxed.
__host__ __device__ inline void store_to_all([[maybe_unused]] const ThreadBlock& block,
                                             Pack16* address, const Pack16& pack) {
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (const auto* const four = reinterpret_cast<const float*>(&pack); asm volatile(
             "multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address),
             "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3])
             : "memory");),
        (detail::for_copies(block, address, SwitchAccess::kStore,
                            [&](void* copy) { store_relaxed(static_cast<Pack16*>(copy), pack); });))
}

/// Adds to a word of all devices, released: `multimem.red`.
__host__ __device__ inline void add_to_all([[maybe_unused]] const ThreadBlock& block,
                                           std::uint32_t* address, std::uint32_t value) {
    NV_IF_ELSE_TARGET(
        NV_IS_DEVICE,
        (asm volatile("multimem.red.release.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(value)
                      : "memory");),
        (detail::for_copies(block, address, SwitchAccess::kAdd, [&](void* copy) {
             fetch_add(static_cast<std::uint32_t*>(copy), value, Order::kRelease);
         });))
}

/// Orders accesses by a multicast address and by another address of the same memory: those before
/// it, of this thread or acquired by it, and those after it. `fence.proxy.alias`.
__host__ __device__ inline void fence_alias() {
    NV_IF_ELSE_TARGET(NV_IS_DEVICE,
                      (asm volatile("fence.proxy.alias;" ::
                                        : "memory");),
                      (if constexpr (kExplored) { explored_fence_alias(); }))
}

}  // namespace symm::simt
