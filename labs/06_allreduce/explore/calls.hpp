#pragma once
/// \file
/// Calls of an AllReduce, or of one half of it, in a scene: inputs, and the check of the outputs.

#include <cuda.h>
#include <fmt/core.h>

#include <string>
#include <vector>

#include "common/explore/explore.hpp"
#include "common/explore/timeouts.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"

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

/// A rank's call for a kernel, of sums. Its count is set call by call.
template <class T>
KernelCall kernel_call(Collective collective, const Buffers& mine, int rank, int ranks,
                       const simt::Timeout& timeout) {
    const DataType type = std::is_integral_v<T> ? DataType::kUint32 : DataType::kFloat;
    return {{Reduction(ReduceOp::kSum, ranks), timeout, rank, ranks},
            {{type, ReduceOp::kSum, collective}, mine.in, mine.out, 0}};
}

struct Ranks {
    int ranks;
    unsigned threads = 1;
    unsigned blocks = 1;
};

/// The ranks' calls with `counts[c]` elements, of each part if there are parts, one after another.
struct Calls {
    std::vector<std::size_t> counts;
    int ranks;
    Collective collective = Collective::kAllReduce;

    std::size_t parts_in() const { return collective == Collective::kReduceScatter ? ranks : 1; }
    std::size_t parts_out() const { return collective == Collective::kAllGather ? ranks : 1; }

    /// Element i of `rank`'s output of call c.
    template <class T>
    T result(int rank, unsigned c, std::size_t i) const {
        if (collective == Collective::kAllGather) {
            return input<T>(static_cast<int>(i / counts[c]), c, i % counts[c]);
        }
        const std::size_t at = i + (parts_in() > 1 ? rank * counts[c] : 0);
        T sum = input<T>(0, c, at);
        for (int p = 1; p < ranks; ++p) {
            sum = static_cast<T>(sum + input<T>(p, c, at));
        }
        return sum;
    }
};

/// Makes the calls: fills the input, runs `kernel(count)`, checks the output. A rank that has given
/// up checks nothing, as its host would throw.
template <class T, class Kernel>
void make_calls(const ThreadBlock& block, const Calls& calls, int rank, CUdeviceptr in,
                CUdeviceptr out, const simt::Timeout& timeout, const Kernel& kernel) {
    const bool first = block.grid_rank() == 0;
    for (unsigned c = 0; c < calls.counts.size(); ++c) {
        const std::size_t count = calls.counts[c];
        if (first && !explore::gave_up(timeout)) {
            for (std::size_t i = 0; i < count * calls.parts_in(); ++i) {
                elements<T>(in)[i] = input<T>(rank, c, i);
            }
        }
        explore::kernel_end();
        kernel(count);
        explore::kernel_end();
        if (!first || explore::gave_up(timeout)) {
            continue;
        }
        for (std::size_t i = 0; i < count * calls.parts_out(); ++i) {
            const T result = calls.result<T>(rank, c, i);
            if (elements<T>(out)[i] != result) {
                fail(fmt::format("rank {}, call {}, element {}: {} instead of {}", rank, c, i,
                                 elements<T>(out)[i], result));
            }
        }
    }
}

}  // namespace symm
