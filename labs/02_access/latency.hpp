#pragma once
/// \file
/// How long one load of another device's memory takes.
///
/// One thread follows a chain of indices through the owner's memory. Each load's value is the next
/// load's address, so no two loads overlap, and the time per hop is the latency of a load. The
/// chain visits every 128-byte line of the buffer once, in random order, and each load bypasses the
/// L1 cache. If the buffer fits in the owner's L2 cache, as 2 MiB do, the cache answers the loads.
///
/// Source: NVIDIA/nvbandwidth, device_to_device_latency_sm (ptrChasingKernel).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cuda/gpu.hpp"

namespace symm {

/// Words in a line.
inline constexpr std::size_t kWordsOfLine = 32;

/// A chain through `lines` lines of kWordsOfLine words. The first word of a line is the index of
/// the first word of the next line; after `lines` hops from word 0 the chain is back at word 0.
std::vector<std::uint32_t> make_chain(std::size_t lines, std::uint32_t seed);

/// Nanoseconds per load of the accessor from the owner's memory, on average over `hops` (not 0) in
/// a chain of `lines` (not 0). Throws std::runtime_error if the chain ended at a wrong place,
/// CudaError.
double load_latency_ns(const Gpu& accessor, const Gpu& owner, std::size_t lines,
                       std::uint32_t hops);

}  // namespace symm
