#pragma once
/// \file
/// Rung 1, a copy through the host: no GPU needs to reach another one. Each rank copies its input
/// into host memory, its CPU adds up what all ranks have there, and the sum is copied back.
///
/// The real way without peer access is lab 04: its kernels write into host memory themselves, and
/// pass on one part while they fill the next.

#include <cstddef>
#include <vector>

#include "common/cuda/copy.hpp"
#include "common/cuda/pinned_memory.hpp"
#include "common/ranks/rank.hpp"

namespace symm::ladder {

/// One rank's side. Ranks are threads, so that each can read the host memory of all.
class ThroughHost {
public:
    ThroughHost(Rank& rank, std::size_t most_bytes)
        : rank_(rank),
          mine_(most_bytes),
          sums_(most_bytes / sizeof(float)),
          all_(rank.bootstrap().allgather("host memory", mine_.as<const float>())) {}

    /// Returns when `out` is complete. Collective. Work that writes `in` must have ended.
    void operator()(CUdeviceptr in, CUdeviceptr out, std::size_t count) {
        copy_to_host(mine_.data(), in, count * sizeof(float));
        rank_.bootstrap().barrier("all inputs are in host memory");
        for (std::size_t i = 0; i < count; ++i) {
            sums_[i] = 0;
            for (const float* input : all_) {
                sums_[i] += input[i];
            }
        }
        rank_.bootstrap().barrier("all ranks have read the inputs");  // the next call writes there
        copy_to_device(out, sums_.data(), count * sizeof(float));
    }

private:
    Rank& rank_;
    PinnedMemory mine_;
    std::vector<float> sums_;
    std::vector<const float*> all_;
};

}  // namespace symm::ladder
