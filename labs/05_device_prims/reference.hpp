#pragma once
/// \file
/// Inputs that tell rank and index, and what collectives must make of them.
///
/// All inputs are whole numbers so small that sums, products, least and greatest of eight ranks are
/// exact in every type, in whatever order (those of integers may wrap); an average is rounded as
/// the kernel rounds it. So results must be equal.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "labs/05_device_prims/reduction.hpp"
#include "labs/05_device_prims/ring.hpp"

namespace symm {

/// A collective as its reference sees it.
struct CheckedCall {
    Collective collective = Collective::kAllReduce;
    ReduceOp op = ReduceOp::kSum;
    std::size_t count = 0;  ///< As RingCall's.
    int root = 0;
    int ranks = 1;
    std::uint32_t salt = 0;  ///< Another one, other inputs.

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
        return detail::narrowed<T>(value<T>(rank, index));
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

    template <class T>
    __host__ __device__ std::int64_t value(int rank, std::size_t index) const {
        std::uint64_t x = index * 0x9e3779b97f4a7c15U +
                          static_cast<std::uint64_t>(rank) * 0x85ebca6bU +
                          salt * 0xc2b2ae3d27d4eb4fU;
        x ^= x >> 31;
        x *= 0xbf58476d1ce4e5b9U;  // splitmix64, Sebastiano Vigna: public domain
        x ^= x >> 29;
        constexpr bool kExactTo256 = std::is_class_v<T>;  // half and bfloat16
        if (op == ReduceOp::kProd) {
            return 1 + static_cast<std::int64_t>(x % (kExactTo256 ? 2 : 4));
        }
        constexpr std::int64_t kRange = kExactTo256 ? 32 : sizeof(T) == 1 ? 256 : 1 << 16;
        const auto drawn = static_cast<std::int64_t>(x % static_cast<std::uint64_t>(kRange));
        return sizeof(T) == 1 ? drawn : drawn - kRange / 2;
    }

    template <class T>
    __host__ __device__ T reduced(std::size_t index) const {
        std::int64_t all = value<T>(0, index);
        for (int rank = 1; rank < ranks; ++rank) {
            const std::int64_t next = value<T>(rank, index);
            if (op == ReduceOp::kProd) {
                all *= next;
            } else if (op == ReduceOp::kMin) {
                all = next < all ? next : all;
            } else if (op == ReduceOp::kMax) {
                all = next > all ? next : all;
            } else {
                all += next;
            }
        }
        if (op != ReduceOp::kAvg) {
            return detail::narrowed<T>(all);
        }
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(static_cast<T>(all) / ranks);
        } else if constexpr (sizeof(T) == 8) {
            return static_cast<double>(all) * (1.0 / ranks);
        } else {
            return detail::narrowed<T>(static_cast<float>(all) * static_cast<float>(1.0 / ranks));
        }
    }
};

/// Fills the input of a rank. Queued on the stream. Throws CudaError. (These two in a .cu file.)
void queue_fill(CUstream stream, DataType type, const CheckedCall& call, int rank,
                CUdeviceptr input);
/// Adds the number of wrong elements of a rank's output to `*wrong`, in device memory.
void queue_check(CUstream stream, DataType type, const CheckedCall& call, int rank,
                 CUdeviceptr output, std::uint64_t* wrong);

}  // namespace symm
