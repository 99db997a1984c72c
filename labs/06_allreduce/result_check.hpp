#pragma once
/// \file
/// The result check: inputs filled, outputs poisoned, results compared with a reference.

#include <cstdint>
#include <string>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/06_allreduce/input.hpp"

namespace symm {

/// Fills inputs and checks outputs of one rank. All work is queued on the stream that is given;
/// `check` waits.
class Verifier {
public:
    Verifier(int rank, int ranks) : rank_(rank), ranks_(ranks), report_(sizeof(CheckReport)) {}

    /// Another input than ever before on this verifier. All ranks do this in the same order.
    void fill(const Stream& stream, DataType type, CUdeviceptr in, std::size_t count);
    /// Overwrites `bytes` with a pattern that is no number of either type.
    static void poison(const Stream& stream, CUdeviceptr out, std::size_t bytes);
    /// Compares with the reference for the last fill; waits for the stream. Throws
    /// std::runtime_error naming the rank, how many elements are wrong, and one of them with what
    /// it should have been.
    void check(const Stream& stream, DataType type, CUdeviceptr out, std::size_t count,
               Rounding rounding = Rounding::kOnce);

private:
    int rank_;
    int ranks_;
    std::uint32_t salt_ = 0;
    DeviceMemory report_;
};

}  // namespace symm
