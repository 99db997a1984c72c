#pragma once
/// \file
/// Elements in packs: how two packs become one, and how packs are read from and written to a
/// user's memory.
///
/// A kernel is compiled once per element type. The operation is chosen when it runs: all threads
/// take the same branch, once per pack, and that costs less than the time to build more kernels.
///
/// half and bfloat16 are computed as float and rounded after each operation. Sums and products of
/// integers wrap.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda/std/bit>
#include <nv/target>
#include <type_traits>

#include "common/simt/pack.hpp"
#include "labs/05_device_prims/data_type.hpp"

namespace symm {

/// Calls `use(T{})` with the element type.
template <class Use>
void with_type(DataType type, const Use& use) {
    switch (type) {
        case DataType::kFloat:
            return use(float{});
        case DataType::kHalf:
            return use(__half{});
        case DataType::kBfloat16:
            return use(__nv_bfloat16{});
        case DataType::kDouble:
            return use(double{});
        case DataType::kInt32:
            return use(std::int32_t{});
        case DataType::kInt64:
            return use(std::int64_t{});
        case DataType::kUint8:
            return use(std::uint8_t{});
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

/// What an element is computed as: half and bfloat16 as float, integers so that they may wrap.
template <class T>
__host__ __device__ auto widened(T value) {
    if constexpr (std::is_same_v<T, __half>) {
        return __half2float(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __bfloat162float(value);
    } else if constexpr (std::is_integral_v<T>) {
        return static_cast<std::make_unsigned_t<T>>(value);
    } else {
        return value;
    }
}

template <class T, class Wide>
__host__ __device__ T narrowed(Wide value) {
    if constexpr (std::is_same_v<T, __half>) {
        return __float2half_rn(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __float2bfloat16_rn(value);
    } else {
        return static_cast<T>(value);
    }
}

/// A pack whose elements are `operation` of the elements of `a` and `b`.
template <class T, class Pack, class Operation>
__host__ __device__ Pack each(const Pack& a, const Pack& b, const Operation& operation) {
    auto x = cuda::std::bit_cast<Elements<T, Pack>>(a);
    const auto y = cuda::std::bit_cast<Elements<T, Pack>>(b);
    SYMM_UNROLL
    for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
        x.at[i] = operation(x.at[i], y.at[i]);
    }
    return cuda::std::bit_cast<Pack>(x);
}

}  // namespace detail

/// The operation of a call.
struct Reduction {
    ReduceOp op;
    int ranks;
    double inverse;  ///< 1 / ranks. A multiplication is cheaper than a division.

    __host__ __device__ Reduction(ReduceOp operation, int of_ranks)
        : op(operation), ranks(of_ranks), inverse(1.0 / of_ranks) {}

    template <class T, class Pack>
    __host__ __device__ Pack combine(const Pack& a, const Pack& b) const {
        using detail::narrowed;
        using detail::widened;
        switch (op) {
            case ReduceOp::kProd:
                return detail::each<T>(
                    a, b, [](T x, T y) { return narrowed<T>(widened(x) * widened(y)); });
            case ReduceOp::kMin:
                return detail::each<T>(
                    a, b, [](T x, T y) { return comparable(y) < comparable(x) ? y : x; });
            case ReduceOp::kMax:
                return detail::each<T>(
                    a, b, [](T x, T y) { return comparable(x) < comparable(y) ? y : x; });
            case ReduceOp::kSum:
            case ReduceOp::kAvg:
                break;
        }
        return detail::each<T>(a, b, [](T x, T y) { return narrowed<T>(widened(x) + widened(y)); });
    }

    /// What is still to do when all ranks' elements have been combined.
    template <class T, class Pack>
    __host__ __device__ Pack finish(const Pack& pack) const {
        if (op != ReduceOp::kAvg) {
            return pack;
        }
        const Reduction& self = *this;
        return detail::each<T>(pack, pack, [&self](T x, T) { return self.averaged(x); });
    }

    /// A sum of all ranks' elements, divided by their number.
    template <class T>
    __host__ __device__ T averaged(T sum) const {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(sum / ranks);
        } else {
            const auto wide = detail::widened(sum);
            return detail::narrowed<T>(wide * static_cast<std::decay_t<decltype(wide)>>(inverse));
        }
    }

private:
    template <class T>
    __host__ __device__ static auto comparable(T value) {
        if constexpr (std::is_integral_v<T>) {
            return value;  // with its sign
        } else {
            return detail::widened(value);
        }
    }
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

/// Reads as many elements as a pack has, or the `count` that there are if these are fewer: at once
/// where the address allows it, else one by one.
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
