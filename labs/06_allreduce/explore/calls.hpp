#pragma once
/// \file
/// Calls of an AllReduce in a scene: inputs, and the check of the outputs.

#include <fmt/core.h>

#include <string>
#include <vector>

#include "common/explore/explore.hpp"
#include "common/explore/timeouts.hpp"

namespace symm {

using explore::fail;
using explore::Scene;
using simt::ThreadBlock;

constexpr std::size_t kMostElements = 64;

/// Unique to rank, call and index.
template <class T>
T input(int rank, unsigned call, std::size_t i) {
    return static_cast<T>(1 + static_cast<unsigned>(rank) + 10 * call + 100 * i);
}

template <class T>
T* elements(CUdeviceptr address) {
    return reinterpret_cast<T*>(address);
}

/// A buffer of each rank.
template <class T>
CUdeviceptr buffer(Scene& scene, const std::string& name, int rank) {
    return reinterpret_cast<CUdeviceptr>(scene.allocate<T>(kMostElements, name, rank));
}

/// Makes calls with `counts[c]` elements, one after another: fills the input, runs `kernel`, checks
/// the output. A rank that has given up checks nothing, as its host would throw.
template <class T, class Kernel>
void make_calls(const ThreadBlock& block, const std::vector<std::size_t>& counts, int rank,
                int ranks, CUdeviceptr in, CUdeviceptr out, const simt::Timeout& timeout,
                const Kernel& kernel) {
    const bool first = block.grid_rank() == 0;
    for (unsigned c = 0; c < counts.size(); ++c) {
        if (first && !explore::gave_up(timeout)) {
            for (std::size_t i = 0; i < counts[c]; ++i) {
                elements<T>(in)[i] = input<T>(rank, c, i);
            }
        }
        explore::kernel_end();
        kernel(counts[c]);
        explore::kernel_end();
        if (!first || explore::gave_up(timeout)) {
            continue;
        }
        for (std::size_t i = 0; i < counts[c]; ++i) {
            T sum = input<T>(0, c, i);
            for (int p = 1; p < ranks; ++p) {
                sum = static_cast<T>(sum + input<T>(p, c, i));
            }
            if (elements<T>(out)[i] != sum) {
                fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank, c, i,
                                 elements<T>(out)[i], sum));
            }
        }
    }
}

struct Ranks {
    int ranks;
    unsigned threads = 1;
    unsigned blocks = 1;
};

}  // namespace symm
