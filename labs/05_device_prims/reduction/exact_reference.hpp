#pragma once
/// \file
/// Inputs that identify rank and index, and the results that collectives must compute from them.
///
/// Integers may be anything: sums and products wrap. Inputs of floating types are whole numbers so
/// small that sums, products, minima and maxima of eight ranks are exact, in any order; an average
/// is rounded as the kernel rounds it. So results must be equal. NaNs and zeros of both signs are
/// in tests/extremes.hpp.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "labs/05_device_prims/reduction/collective.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

/// A collective as its reference sees it.
struct CheckedCall {
    Collective collective = Collective::kAllReduce;
    ReduceOp op = ReduceOp::kSum;
    std::size_t count = 0;  ///< Elements of an input or an output: of each rank's part where the
                            ///< ranks have parts (RingRequest).
    int root = 0;
    int ranks = 1;
    std::uint32_t salt = 0;  ///< A different salt gives different inputs.

    /// Elements of a rank's input and output.
    __host__ __device__ std::size_t input_count() const {
        return count * (collective == Collective::kReduceScatter ? parts() : 1);
    }
    __host__ __device__ std::size_t output_count() const {
        return count * (collective == Collective::kAllGather ? parts() : 1);
    }
    /// Whether a rank's output is written.
    __host__ __device__ bool writes(int rank) const {
        return collective != Collective::kReduce || rank == root;
    }

    /// Element `index` of the input of a rank.
    template <class T>
    __host__ __device__ T input(int rank, std::size_t index) const {
        const std::uint64_t drawn = bits(rank, index);
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(drawn);
        } else {
            return static_cast<T>(static_cast<Wide<T>>(whole<T>(drawn)));
        }
    }

    /// Element `index` of the output of a rank.
    template <class T>
    __host__ __device__ T output(int rank, std::size_t index) const {
        switch (collective) {
            case Collective::kAllGather:
                return input<T>(static_cast<int>(index / count), index % count);
            case Collective::kBroadcast:
                return input<T>(root, index);
            case Collective::kReduceScatter:
                return reduced<T>(index + static_cast<std::size_t>(rank) * count);
            case Collective::kAllReduce:
            case Collective::kReduce:
                break;
        }
        return reduced<T>(index);
    }

private:
    __host__ __device__ std::size_t parts() const { return static_cast<std::size_t>(ranks); }

    __host__ __device__ std::uint64_t bits(int rank, std::size_t index) const {
        std::uint64_t x = index * 0x9e3779b97f4a7c15U +
                          static_cast<std::uint64_t>(rank) * 0x85ebca6bU +
                          salt * 0xc2b2ae3d27d4eb4fU;
        x ^= x >> 31;
        x *= 0xbf58476d1ce4e5b9U;  // splitmix64, Sebastiano Vigna: public domain
        return x ^ x >> 29;
    }

    /// A small whole number.
    template <class T>
    __host__ __device__ std::int64_t whole(std::uint64_t drawn) const {
        constexpr bool kExactTo256 = std::is_class_v<T>;  // half and bfloat16
        if (op == ReduceOp::kProd) {
            return 1 + static_cast<std::int64_t>(drawn % (kExactTo256 ? 2 : 4));
        }
        constexpr std::int64_t kRange = kExactTo256 ? 32 : 1 << 16;
        return static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(kRange)) - kRange / 2;
    }

    template <class T>
    __host__ __device__ T two(T a, T b) const {
        using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                                std::type_identity<T>>::type;  // may wrap
        switch (op) {
            case ReduceOp::kProd:
                return static_cast<T>(static_cast<Sum>(a) * static_cast<Sum>(b));
            case ReduceOp::kMin:
                return b < a ? b : a;
            case ReduceOp::kMax:
                return b > a ? b : a;
            case ReduceOp::kSum:
            case ReduceOp::kAvg:
                break;
        }
        return static_cast<T>(static_cast<Sum>(a) + static_cast<Sum>(b));
    }

    template <class T>
    __host__ __device__ T reduced(std::size_t index) const {
        using Exact = std::conditional_t<std::is_integral_v<T>, T, double>;
        auto all = static_cast<Exact>(input<T>(0, index));
        for (int rank = 1; rank < ranks; ++rank) {
            all = two(all, static_cast<Exact>(input<T>(rank, index)));
        }
        if (op != ReduceOp::kAvg) {
            return static_cast<T>(static_cast<Wide<T>>(all));
        }
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(all / static_cast<T>(ranks));
        } else if constexpr (sizeof(T) == 8) {
            return all * (1.0 / ranks);
        } else {
            return static_cast<T>(static_cast<float>(all) * static_cast<float>(1.0 / ranks));
        }
    }
};

}  // namespace symm
