#pragma once
/// \file
/// The result check: inputs filled, outputs poisoned, results compared with the exact reference.
///
/// Every element is drawn from its rank, its index and a salt that changes with each fill, so a
/// result is wrong if a rank's element is missing, taken twice, of another index or of an old call.

#include <cuda.h>

#include <cstddef>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/05_device_prims/reduction/arithmetic.hpp"
#include "labs/05_device_prims/reduction/exact_reference.hpp"

namespace symm {

/// Fills inputs and checks outputs of one rank; `count` as in CheckedCall. All work is queued
/// on the given stream; `check` waits. Functions throw CudaError.
class Verifier {
public:
    Verifier(int rank, int ranks);

    /// Fills `in` with an input that this verifier has not used before. All ranks make these calls
    /// in the same order.
    void fill(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr in,
              std::size_t count);
    /// The buffers of a call; the larger ones begin at `in` and `out`. If these are the same, the
    /// call is in place: the smaller buffer is this rank's part of the larger one.
    struct Places {
        CUdeviceptr in;
        CUdeviceptr out;
    };
    Places places(const Arithmetic& arithmetic, CUdeviceptr in, CUdeviceptr out,
                  std::size_t count) const;
    /// Overwrites `bytes` with 0xff: NaNs, and unlikely integer results.
    static void poison(const Stream& stream, CUdeviceptr out, std::size_t bytes);
    /// The same for a call's whole output.
    void poison(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
                std::size_t count) const;
    /// Compares with the reference for the last fill; waits for the stream. Throws
    /// std::runtime_error: `rank 1: 3 of 100 elements are wrong, element 51 among them: 7 instead
    /// of 9`.
    void check(const Stream& stream, const Arithmetic& arithmetic, CUdeviceptr out,
               std::size_t count) const;

private:
    CheckedCall call(const Arithmetic& arithmetic, std::size_t count) const {
        return {.collective = arithmetic.collective,
                .op = arithmetic.op,
                .count = count,
                .root = arithmetic.root,
                .ranks = ranks_,
                .salt = salt_};
    }

    int rank_;
    int ranks_;
    std::uint32_t salt_ = 0;
    DeviceMemory report_;
};

}  // namespace symm
