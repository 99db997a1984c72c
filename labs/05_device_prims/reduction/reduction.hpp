#pragma once
/// \file
/// The operation of a call on packs of elements: how the packs of several ranks become one.
///
/// A kernel is compiled once per element type. The operation is chosen when it runs: all threads
/// take the same branch, to the sums or to all other operations, once for the packs they hold. Each
/// further branch would have to be compiled for every type, number of ranks and algorithm. Kernels
/// use unsigned integers for signed ones: sums and products have the same bits, and the other
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

/// The type in which an element is computed.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

/// The operation of a call.
struct Reduction {
    ReduceOp op;
    int ranks;
    bool is_signed;  ///< Integers are signed.
    double inverse;  ///< 1 / ranks. A multiplication is cheaper than a division.

    __host__ __device__ Reduction(ReduceOp operation, int of_ranks, bool signed_integers = false)
        : op(operation), ranks(of_ranks), is_signed(signed_integers), inverse(1.0 / of_ranks) {}

    /// The packs of the first `count` ranks become one, element by element, in their order. Rounded
    /// once. `finishes`: they are all ranks' packs, so an average is divided.
    template <class T, class Pack, int kMost>
    __host__ __device__ Pack reduce(const Pack (&packs)[kMost], int count,
                                    bool finishes = true) const {
        if (sums()) [[likely]] {
            if constexpr (kMost == 2 && sizeof(T) == 2 && sizeof(Pack) > sizeof(T)) {
                NV_IF_TARGET(NV_PROVIDES_SM_90, (if (op == ReduceOp::kSum && count == 2) {
                                 return sum_of_two<T>(packs[0], packs[1]);
                             }))
            }
            return combined<true, T>(packs, count, finishes);
        }
        return combined<false, T>(packs, count, finishes);
    }

    /// Calls `use(reduce)`, once for any number of packs: `reduce(packs, count)` is the function
    /// above. For loops, which then choose the operation outside.
    template <class T, class Use>
    __host__ __device__ void with_reduce(const Use& use) const {
        if (sums()) [[likely]] {
            use([this](const auto& packs, int count) {
                return this->combined<true, T>(packs, count, true);
            });
        } else {
            use([this](const auto& packs, int count) {
                return this->combined<false, T>(packs, count, true);
            });
        }
    }

    /// Combines two packs into one, and does not finish.
    template <class T, class Pack>
    __host__ __device__ Pack combine(const Pack& a, const Pack& b) const {
        const Pack packs[2] = {a, b};
        return reduce<T>(packs, 2, false);
    }

    /// The last step, after all ranks' elements have been combined.
    template <class T, class Pack>
    __host__ __device__ Pack finish(const Pack& pack) const {
        const Pack packs[1] = {pack};
        return op == ReduceOp::kAvg ? combined<true, T>(packs, 1, true) : pack;
    }

private:
    __host__ __device__ bool sums() const { return op == ReduceOp::kSum || op == ReduceOp::kAvg; }

    template <bool kSums, class T, class Pack, int kMost>
    __host__ __device__ Pack combined(const Pack (&packs)[kMost], int count, bool finishes) const {
        constexpr std::size_t kPer = kPerPack<T, Pack>;
        Wide<T> all[kPer] = {};
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            if (p == 0 || p < count) {
                const auto elements = cuda::std::bit_cast<Elements<T, Pack>>(packs[p]);
                SYMM_UNROLL
                for (std::size_t i = 0; i < kPer; ++i) {
                    const auto next = static_cast<Wide<T>>(elements.at[i]);
                    all[i] = p == 0 ? next : two<kSums>(all[i], next);
                }
            }
        }
        if (finishes && op == ReduceOp::kAvg) {
            SYMM_UNROLL
            for (std::size_t i = 0; i < kPer; ++i) {
                all[i] = average(all[i]);
            }
        }
        Elements<T, Pack> result;
        SYMM_UNROLL
        for (std::size_t i = 0; i < kPer; ++i) {
            result.at[i] = static_cast<T>(all[i]);
        }
        return cuda::std::bit_cast<Pack>(result);
    }

    /// The sums of two packs' halves or bfloat16s, two by an instruction. They have the bits that
    /// combined() computes: a float holds the sum so precisely that a second rounding changes
    /// nothing.
    template <class T, class Pack>
    __device__ static Pack sum_of_two(const Pack& a, const Pack& b) {
        auto x = cuda::std::bit_cast<Elements<std::uint32_t, Pack>>(a);
        const auto y = cuda::std::bit_cast<Elements<std::uint32_t, Pack>>(b);
        SYMM_UNROLL
        for (std::size_t i = 0; i < kPerPack<std::uint32_t, Pack>; ++i) {
            if constexpr (std::is_same_v<T, __half>) {
                asm("add.rn.f16x2 %0, %0, %1;" : "+r"(x.at[i]) : "r"(y.at[i]));
            } else {
                asm("add.rn.bf16x2 %0, %0, %1;" : "+r"(x.at[i]) : "r"(y.at[i]));
            }
        }
        return cuda::std::bit_cast<Pack>(x);
    }

    /// Two elements become one. Sums are compiled apart from the other operations, which are chosen
    /// element by element.
    template <bool kSums, class T>
    __host__ __device__ T two(T x, T y) const {
        if constexpr (kSums) {
            return static_cast<T>(x + y);
        } else {
            return op == ReduceOp::kProd ? static_cast<T>(x * y) : least_or_greatest(x, y);
        }
    }

    /// The sum of all ranks' elements, divided by their number.
    template <class T>
    __host__ __device__ T average(T sum) const {
        if constexpr (std::is_integral_v<T>) {
            return is_signed ? static_cast<T>(static_cast<std::make_signed_t<T>>(sum) / ranks)
                             : static_cast<T>(sum / static_cast<T>(ranks));
        } else {
            return sum * static_cast<T>(inverse);
        }
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
};

}  // namespace symm
