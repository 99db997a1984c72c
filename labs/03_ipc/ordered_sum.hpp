#pragma once
/// \file
/// A sum of doubles that is the same to the last bit on every device and on the host.
///
/// Adding doubles in another order gives another sum. So the order is fixed: there are kSumLanes
/// partial sums; lane l adds the elements l, l + kSumLanes, ... in this order, and in the end the
/// lanes are added one after another. The number of threads does not matter: each takes whole lanes.

#include <cuda.h>

#include <cstddef>
#include <span>

#include "common/cuda/gpu.hpp"

namespace symm {

inline constexpr std::size_t kSumLanes = 4096;

/// The sum of `count` doubles at `at`, read by a kernel on `gpu`. Waits for its stream.
double ordered_sum(const Gpu& gpu, CUdeviceptr at, std::size_t count);

/// The same sum, by the host.
double ordered_sum(std::span<const double> values);

/// Element `index` of an example whose sum depends on the order: very different sizes, both signs.
double sum_example(std::size_t index);

}  // namespace symm
