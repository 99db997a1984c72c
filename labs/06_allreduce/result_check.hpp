#pragma once
/// \file
/// The result check: inputs filled, outputs poisoned, results compared with a reference.
///
/// Every element is a hash of its rank, its index and a salt that changes with each fill: a result
/// with one rank's element missing, taken twice, of another index or of an earlier call is wrong by
/// far more than rounding. The reference is added up in double precision from the elements as the
/// type rounds them.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "common/cuda/device_memory.hpp"
#include "common/cuda/stream.hpp"
#include "labs/06_allreduce/element.hpp"

namespace symm {

/// Element `index` of rank `rank` before it is rounded to its type, -1 to 1.
__host__ __device__ inline float input_value(int rank, std::size_t index, std::uint32_t salt) {
    std::uint64_t x = index * 64 + static_cast<std::uint64_t>(rank) + (std::uint64_t{salt} << 40);
    x ^= x >> 30;  // splitmix64, Sebastiano Vigna: public domain
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31;
    return static_cast<float>(static_cast<std::int32_t>(x >> 40) - (1 << 23)) * 0x1p-23F;
}

/// How often a sum is rounded to its type on the way.
enum class Rounding : std::uint32_t {
    kOnce,          ///< At the end: ours, and NCCL's on symmetric windows.
    kEachAddition,  ///< NCCL's default path adds in the type itself.
};

/// What a check found. In device memory, zeroed.
struct CheckReport {
    std::uint64_t wrong;  ///< Elements beyond their tolerance.
    std::uint64_t index;  ///< The index of any one of them.
    double got;
    double expected;
    std::uint32_t claimed;
};

/// Fills inputs and checks outputs of one rank. All work is queued on the stream that is given;
/// `check` waits.
class Verifier {
public:
    Verifier(int rank, int ranks) : rank_(rank), ranks_(ranks), report_(sizeof(CheckReport)) {}

    /// Fills `in` with an input that this verifier has not used before. All ranks make these calls
    /// in the same order.
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
