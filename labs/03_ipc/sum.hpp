#pragma once
/// \file
/// Sums of doubles that are equal to the last bit wherever they are computed.
///
/// Adding doubles in another order gives another sum. So the order is fixed here: kSumLanes partial
/// sums, lane l taking the elements l, l + kSumLanes, ... in this order, and then the lanes one
/// after another. How many threads do the work does not matter: a thread takes whole lanes.

#include <cuda.h>

#include <cstddef>
#include <span>

#include "common/cuda/gpu.hpp"

namespace symm {

inline constexpr std::size_t kSumLanes = 4096;

/// The sum of `count` doubles at `at`, read by a kernel on `gpu`. Waits for its stream.
double sum_doubles(const Gpu& gpu, CUdeviceptr at, std::size_t count);

/// The same sum, by the host.
double sum_doubles(std::span<const double> values);

/// Doubles of very different sizes and both signs, whose sum depends on the order.
double sum_example(std::size_t index);

}  // namespace symm
