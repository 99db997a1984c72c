#pragma once
/// \file
/// The numbers that are added up, and the check of what came out.
///
/// Every element is a hash of its rank, its index and a salt that changes from call to call: a
/// result with one rank's element missing, taken twice, of another index or of an earlier call is
/// wrong by far more than rounding. The reference is added up in double precision from the elements
/// as the type rounds them.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

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
    std::uint64_t wrong;        ///< Elements beyond their tolerance.
    std::uint64_t first_index;  ///< One of them (any).
    double got;
    double expected;
    std::uint32_t claimed;
};

/// Fills `count` elements of rank `rank`. In stream order.
void fill_input(CUstream stream, DataType type, CUdeviceptr at, std::size_t count, int rank,
                std::uint32_t salt);

/// Compares `count` elements with the reference of `ranks` ranks. `report` is added to. In stream
/// order.
void check_output(CUstream stream, DataType type, CUdeviceptr at, std::size_t count, int ranks,
                  std::uint32_t salt, Rounding rounding, CheckReport* report);

}  // namespace symm
