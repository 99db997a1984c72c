#pragma once
/// \file
/// The operation of a call on packs of elements: how the packs of several ranks become one.
///
/// A kernel is compiled once per element type. The operation is chosen when it runs: all threads
/// take the same branch, to the sums or to all other operations, once for the packs they hold. Each
/// further branch would have to be compiled for every type, number of ranks and algorithm. Kernels
/// use signed integers for unsigned ones: sums and products have the same bits, and the other
/// operations check Reduction::is_signed.
///
/// half and bfloat16 are computed as float. Sums and products of integers wrap.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <cuda/std/bit>
#include <limits>
#include <type_traits>

#include "labs/05_device_prims/reduction/data_type.hpp"
#include "labs/05_device_prims/reduction/elements.hpp"

namespace symm {

namespace detail {

/// The type in which an element is computed.
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

    /// Combines two packs into one.
    template <class T, class Pack>
    __host__ __device__ Pack combine(const Pack& a, const Pack& b) const {
        const Pack packs[2] = {a, b};
        return with_operation([&](const auto& operation) {
            return narrowed<T, Pack>(folded<T>(packs, 2, operation));
        });
    }

    /// The last step, after all ranks' elements have been combined.
    template <class T, class Pack>
    __host__ __device__ Pack finish(const Pack& pack) const {
        if (op != ReduceOp::kAvg) {
            return pack;
        }
        return narrowed<T, Pack>(averaged(widened<T>(pack)));
    }

    /// Calls `use(reduce)`, once for any number of packs: `reduce(packs, count)` combines the packs
    /// of the first `count` ranks into one, in their order: rounded once, and finished.
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

    /// One branch for sums, one for all other operations, which choose element by element. `use`
    /// should produce packs: wide elements that outlive the branch take more registers.
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

    /// Where a value is in an order of all floats, which ends with the wanted one: NaNs, then
    /// numbers, -0 before +0. So the result does not depend on the order of the ranks.
    template <class T>
    __host__ __device__ static auto place(T value, bool least) {
        using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
        constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
        constexpr Bits kNans = (Bits{1} << (std::numeric_limits<T>::digits - 1)) - 1;  // of a sign
        const Bits bits = cuda::std::bit_cast<Bits>(value) ^ (least ? kSign : 0);
        const Bits ascending = (bits & kSign) != 0 ? ~bits : bits | kSign;
        return ascending + kNans;  // positive NaNs, the last ones, become the first
    }

    /// The lesser of two elements if `op` is kMin, otherwise the greater one.
    template <class T>
    __host__ __device__ T least_or_greatest(T x, T y) const {
        const bool least = op == ReduceOp::kMin;
        if constexpr (std::is_integral_v<T>) {
            // With these bits flipped, the wanted one is the greater unsigned number.
            const auto flip =
                static_cast<T>(T{is_signed} << (8 * sizeof(T) - 1) ^ (T{0} - T{least}));
            const auto a = static_cast<T>(x ^ flip);
            const auto b = static_cast<T>(y ^ flip);
            return static_cast<T>((a < b ? b : a) ^ flip);
        } else {
            // The instructions order NaNs and zeros as place() does.
            NV_IF_TARGET(NV_IS_DEVICE, (return least ? ::fmin(x, y) : ::fmax(x, y);))
            return place(x, least) < place(y, least) ? y : x;
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

}  // namespace symm
