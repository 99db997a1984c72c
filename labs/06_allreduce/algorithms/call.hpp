#pragma once
/// \file
/// A call of a collective: the same struct from the API to the kernels.

#include <cuda.h>

#include <algorithm>
#include <cstddef>

#include "common/simt/waiter.hpp"
#include "labs/05_device_prims/reduction/arithmetic.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

/// Ranks of a call. For more than kMaxRanksOnGpus, kernels exist for emulated GPUs only.
inline constexpr int kMaxRanksOnGpus = 8;
inline constexpr int kMaxAllReduceRanks = 16;

/// What a rank calls: its operation and types, and its buffers.
struct Call : Arithmetic {
    CUdeviceptr in = 0;  ///< Buffers need only the alignment of an element; 16 bytes are faster.
    CUdeviceptr out = 0;
    std::size_t count = 0;  ///< Elements, of one part if the ranks have parts.

    bool operator==(const Call&) const = default;
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
    /// An AllGather only moves elements, so it can move them as integers.
    Call as_integers() const {
        Call moved = *this;
        moved.type = size_of(type) == 8   ? DataType::kUint64
                     : size_of(type) == 4 ? DataType::kUint32
                                          : DataType::kUint8;
        moved.count = bytes() / size_of(moved.type);
        return moved;
    }
};

/// One rank's buffers, as addresses in the reading rank.
struct Buffers {
    CUdeviceptr in;
    CUdeviceptr out;
};

/// What each kernel of a call is told.
struct KernelCall : Call {
    Reduction reduction;
    simt::Timeout timeout;
    int rank;
    int ranks;
};

}  // namespace symm
