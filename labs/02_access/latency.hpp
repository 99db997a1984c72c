#pragma once
/// \file
/// How long one load of another device's memory takes.
///
/// One thread follows a chain of indices through the owner's memory: the next address is known only
/// once the last value has arrived, so nothing overlaps, and the time for a hop is the latency of a
/// load. The chain visits every 128-byte line of the buffer once in random order, so that no cache
/// line is met twice.
///
/// Source: NVIDIA/nvbandwidth, device_to_device_latency_sm (ptrChasingKernel).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/gpu.hpp"
#include "labs/02_access/peer_matrix.hpp"

namespace symm {

/// A chain through `lines` lines of kWordsOfLine words: at a line's first word stands the index of
/// the next line's first word, and after `lines` hops from word 0 one is back at word 0.
std::vector<std::uint32_t> make_chain(std::size_t lines, std::uint32_t seed);

inline constexpr std::size_t kWordsOfLine = 32;

/// Nanoseconds for a load of the accessor from the owner's memory, on average over `hops`. `bytes`
/// is the chain's size, at least one line of 128 bytes. Throws std::runtime_error where the chain
/// ended at a wrong place, CudaError.
double load_latency_ns(const Gpu& accessor, const Gpu& owner, std::size_t bytes,
                       std::uint32_t hops);

}  // namespace symm
