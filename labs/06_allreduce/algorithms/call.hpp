#pragma once
/// \file
/// A call of a collective: the same struct from the API to the kernels.

#include <cuda.h>

#include <algorithm>
#include <cstddef>

#include "common/cuda/addresses.hpp"
#include "common/simt/waiter.hpp"
#include "labs/05_device_prims/reduction/arithmetic.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

/// Ranks of a call. For more than kMaxRanksOnGpus, kernels exist for emulated GPUs only.
inline constexpr int kMaxRanksOnGpus = 8;
inline constexpr int kMaxAllReduceRanks = 16;

struct CallBuffers {
    CUdeviceptr in;  ///< Buffers need only the alignment of an element; 16 bytes are faster.
    CUdeviceptr out;
    std::size_t count;  ///< Elements, of one part if the ranks have parts.
};

/// What a rank calls.
struct Call : CallBuffers, Arithmetic {
    Call(const Arithmetic& arithmetic = {}, CUdeviceptr from = 0, CUdeviceptr to = 0,
         std::size_t elements = 0)
        : CallBuffers{from, to, elements}, Arithmetic(arithmetic) {}

    std::size_t bytes() const { return count * size_of(type); }
    /// The larger buffer's bytes.
    std::size_t all_bytes(int ranks) const { return bytes() * parts(ranks); }
    /// Elements [first, first + most) of the buffers, or of each part, as far as they exist.
    Call piece(std::size_t first, std::size_t most) const {
        Call piece = *this;
        piece.in += first * size_of(type);
        piece.out += first * size_of(type);
        piece.count = std::min(most, count - first);
        return piece;
    }
    /// A call that only moves elements can move them as integers.
    Call as_integers() const {
        Call moved = *this;
        moved.type = size_of(type) == 8   ? DataType::kUint64
                     : size_of(type) == 4 ? DataType::kUint32
                                          : DataType::kUint8;
        moved.count = bytes() / size_of(moved.type);
        return moved;
    }
};

/// The address of a buffer that a rank cannot reach, since it lies in no window, or need not.
inline constexpr CUdeviceptr kUnseen = 0;

/// One rank's buffers, as addresses in the reading rank.
struct Buffers {
    CUdeviceptr in;
    CUdeviceptr out;
};

/// Parameters besides the call.
struct KernelContext {
    Reduction reduction;
    simt::Timeout timeout;
    int rank;
    int ranks;

    /// The peer `step` ranks after this one, cyclic: each rank begins with a different peer.
    __host__ __device__ int peer(int step) const {
        return rank + step < ranks ? rank + step : rank + step - ranks;
    }
    /// A bit for each peer.
    __host__ __device__ unsigned peers() const { return ((1U << ranks) - 1) & ~(1U << rank); }
};

/// Parameters of a kernel, first what each kernel reads: parameters in one cache line more cost a
/// small call 0.06 us, of 2.3 on two H200s.
struct KernelParams : KernelContext, Call {};

}  // namespace symm
