#pragma once
/// \file
/// Elements in packs: how two packs become one, and how packs are read from and written to a
/// user's memory.
///
/// A kernel is compiled once per element type. The operation is chosen when it runs: all threads
/// take the same branch, to the sums or to all other operations, once for the packs they hold.
/// Each branch more would have to be compiled for every type, number of ranks and algorithm.
/// Kernels take signed integers for unsigned ones: sums and products have the same bits, and the
/// other operations ask Reduction::is_signed.
///
/// half and bfloat16 are computed as float. Sums and products of integers wrap.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda/std/bit>
#include <nv/target>
#include <type_traits>

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

/// What an element is computed as.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

template <class T>
__host__ __device__ Wide<T> widened(T value) {
    if constexpr (std::is_same_v<T, __half>) {
        return __half2float(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __bfloat162float(value);
    } else {
        return value;
    }
}

template <class T, class From>
__host__ __device__ T narrowed(From value) {
    if constexpr (std::is_same_v<T, __half>) {
        return __float2half_rn(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __float2bfloat16_rn(static_cast<float>(value));
    } else {
        return static_cast<T>(value);
    }
}

}  // namespace detail

/// The operation of a call.
struct Reduction {
    ReduceOp op;
    int ranks;
    bool is_signed;  ///< Integers are signed.
    double inverse;  ///< 1 / ranks. A multiplication is cheaper than a division.

    __host__ __device__ Reduction(ReduceOp operation, int of_ranks, bool signed_integers = false)
        : op(operation), ranks(of_ranks), is_signed(signed_integers), inverse(1.0 / of_ranks) {}

    /// Two packs as one.
    template <class T, class Pack>
    __host__ __device__ Pack combine(const Pack& a, const Pack& b) const {
        const Pack packs[2] = {a, b};
        return with_operation([&](const auto& operation) {
            return narrowed<T, Pack>(folded<T>(packs, 2, operation));
        });
    }

    /// What is still to do when all ranks' elements have been combined.
    template <class T, class Pack>
    __host__ __device__ Pack finish(const Pack& pack) const {
        if (op != ReduceOp::kAvg) {
            return pack;
        }
        return narrowed<T, Pack>(averaged(widened<T>(pack)));
    }

    /// Calls `use(reduce)`, once for any number of packs: `reduce(packs, count)` makes the packs of
    /// the first `count` ranks one, in their order: rounded once, and finished.
    template <class T, class Use>
    __host__ __device__ void with_reduce(const Use& use) const {
        with_operation([&](const auto& operation) {
            use([&]<class Pack, int kMost>(const Pack(&packs)[kMost], int count) {
                const auto all = folded<T>(packs, count, operation);
                return narrowed<T, Pack>(op == ReduceOp::kAvg ? averaged(all) : all);
            });
        });
    }

    /// The same for one pack.
    template <class T, class Pack, int kMost>
    __host__ __device__ Pack reduce(const Pack (&packs)[kMost], int count) const {
        Pack result;
        with_reduce<T>([&](const auto& reduce) { result = reduce(packs, count); });
        return result;
    }

private:
    template <class T, class Pack>
    struct WidePack {
        detail::Wide<T> at[kPerPack<T, Pack>];
    };

    template <class T, class Pack>
    __host__ __device__ static WidePack<T, Pack> widened(const Pack& pack) {
        const auto elements = cuda::std::bit_cast<Elements<T, Pack>>(pack);
        WidePack<T, Pack> wide;
        SYMM_UNROLL
        for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
            wide.at[i] = detail::widened(elements.at[i]);
        }
        return wide;
    }

    template <class T, class Pack>
    __host__ __device__ static Pack narrowed(const WidePack<T, Pack>& wide) {
        Elements<T, Pack> elements;
        SYMM_UNROLL
        for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
            elements.at[i] = detail::narrowed<T>(wide.at[i]);
        }
        return cuda::std::bit_cast<Pack>(elements);
    }

    /// The one branch: sums, and all other operations, which choose element by element. What `use`
    /// makes should be packs: wide elements that outlive the branch take more registers.
    template <class Use>
    __host__ __device__ auto with_operation(const Use& use) const {
        if (op == ReduceOp::kSum || op == ReduceOp::kAvg) [[likely]] {
            return use([](auto x, auto y) { return x + y; });
        }
        const Reduction& self = *this;
        return use([&self](auto x, auto y) {
            return self.op == ReduceOp::kProd ? static_cast<decltype(x)>(x * y)
                                              : self.least_or_greatest(x, y);
        });
    }

    template <class T, class Pack, int kMost, class Operation>
    __host__ __device__ static WidePack<T, Pack> folded(const Pack (&packs)[kMost], int count,
                                                        const Operation& operation) {
        WidePack<T, Pack> all = widened<T>(packs[0]);
        SYMM_UNROLL
        for (int p = 1; p < kMost; ++p) {
            if (p < count) {
                const WidePack<T, Pack> next = widened<T>(packs[p]);
                SYMM_UNROLL
                for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
                    all.at[i] = static_cast<detail::Wide<T>>(operation(all.at[i], next.at[i]));
                }
            }
        }
        return all;
    }

    /// The lesser of two elements where `op` is kMin, else the greater one.
    template <class T>
    __host__ __device__ T least_or_greatest(T x, T y) const {
        const bool least = op == ReduceOp::kMin;
        if constexpr (std::is_integral_v<T>) {
            // With these bits flipped, the one that is wanted is the greater unsigned number.
            const auto flip =
                static_cast<T>(T{is_signed} << (8 * sizeof(T) - 1) ^ (T{0} - T{least}));
            const auto a = static_cast<T>(x ^ flip);
            const auto b = static_cast<T>(y ^ flip);
            return static_cast<T>((a < b ? b : a) ^ flip);
        } else {
            return (least ? y < x : x < y) ? y : x;
        }
    }

    /// Sums of all ranks' elements, divided by their number.
    template <class T, class Pack>
    __host__ __device__ WidePack<T, Pack> averaged(WidePack<T, Pack> sums) const {
        SYMM_UNROLL
        for (std::size_t i = 0; i < kPerPack<T, Pack>; ++i) {
            if constexpr (std::is_integral_v<T>) {
                using Signed = std::make_signed_t<T>;
                sums.at[i] = static_cast<T>(
                    is_signed ? static_cast<T>(static_cast<Signed>(sums.at[i]) / ranks)
                              : sums.at[i] / static_cast<T>(ranks));
            } else {
                sums.at[i] *= static_cast<detail::Wide<T>>(inverse);
            }
        }
        return sums;
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
