#pragma once
/// \file
/// Elements of a user's memory in packs: the element type of a call, and how a pack is read and
/// written where the memory may be aligned to its elements only.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda/std/bit>
#include <nv/target>

#include "common/simt/pack.hpp"
#include "labs/05_device_prims/reduction/data_type.hpp"

namespace symm {

/// Calls `use(T{})` with the element type that kernels take for `type`.
template <class Use>
void with_kernel_type(DataType type, const Use& use) {
    switch (type) {
        case DataType::kFloat:
            return use(float{});
        case DataType::kHalf:
            return use(__half{});
        case DataType::kBfloat16:
            return use(__nv_bfloat16{});
        case DataType::kDouble:
            return use(double{});
        case DataType::kInt8:
        case DataType::kUint8:
            return use(std::uint8_t{});
        case DataType::kInt32:
        case DataType::kUint32:
            return use(std::uint32_t{});
        case DataType::kInt64:
        case DataType::kUint64:
            return use(std::uint64_t{});
    }
}

/// Calls `use(T{})` with the element type.
template <class Use>
void with_type(DataType type, const Use& use) {
    switch (type) {
        case DataType::kInt8:
            return use(std::int8_t{});
        case DataType::kInt32:
            return use(std::int32_t{});
        case DataType::kInt64:
            return use(std::int64_t{});
        default:
            return with_kernel_type(type, use);
    }
}

/// Elements in a pack of 8 or 16 bytes.
template <class T, class Pack>
inline constexpr std::size_t kPerPack = sizeof(Pack) / sizeof(T);

/// A pack, element by element.
template <class T, class Pack>
struct Elements {
    T at[kPerPack<T, Pack>];
};

namespace detail {
/// Whether a GPU can access a whole pack at this address. On the host any address will do.
template <class Pack>
__host__ __device__ bool is_aligned(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % sizeof(Pack) == 0;
}
/// Bytes of `count` elements, or of a pack if that is less.
template <class Pack, class T>
__host__ __device__ std::size_t bytes_in_pack(std::size_t count) {
    return count < kPerPack<T, Pack> ? count * sizeof(T) : sizeof(Pack);
}
}  // namespace detail

/// Reads a whole pack at an address that is aligned for it.
template <class Pack, class T>
__host__ __device__ Pack load_pack(const T* from) {
    Pack pack{};
    NV_IF_ELSE_TARGET(NV_IS_HOST,
                      (std::memcpy(&pack, static_cast<const void*>(from), sizeof(Pack));),
                      (pack = *reinterpret_cast<const Pack*>(from);))
    return pack;
}

/// Reads as many elements as a pack has, or `count` if that is fewer: at once if the address allows
/// it, otherwise one by one.
template <class Pack, class T>
__host__ __device__ Pack load_elements(const T* from, std::size_t count) {
    Pack pack{};
    NV_IF_TARGET(NV_IS_HOST, (std::memcpy(&pack, static_cast<const void*>(from),
                                          detail::bytes_in_pack<Pack, T>(count));
                              return pack;))
    if (count >= kPerPack<T, Pack> && detail::is_aligned<Pack>(from)) {
        return *reinterpret_cast<const Pack*>(from);
    }
    auto elements = cuda::std::bit_cast<Elements<T, Pack>>(pack);
    SYMM_UNROLL
    for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
        if (i < count) {
            elements.at[i] = from[i];
        }
    }
    return cuda::std::bit_cast<Pack>(elements);
}

/// Writes a pack's elements, as load_elements() reads them.
template <class Pack, class T>
__host__ __device__ void store_elements(T* to, const Pack& pack, std::size_t count) {
    NV_IF_TARGET(NV_IS_HOST,
                 (std::memcpy(static_cast<void*>(to), &pack, detail::bytes_in_pack<Pack, T>(count));
                  return;))
    if (count >= kPerPack<T, Pack> && detail::is_aligned<Pack>(to)) {
        *reinterpret_cast<Pack*>(to) = pack;
        return;
    }
    const auto elements = cuda::std::bit_cast<Elements<T, Pack>>(pack);
    SYMM_UNROLL
    for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
        if (i < count) {
            to[i] = elements.at[i];
        }
    }
}

}  // namespace symm
