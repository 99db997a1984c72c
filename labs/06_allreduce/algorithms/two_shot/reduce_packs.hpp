#pragma once
/// \file
/// The inner loop of two shots, chunks and copies: packs of several sources become one, in every
/// target. They are added up in the order of the sources, which is that of the ranks
/// (Reduction::with_reduce).

#include <cstddef>

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"

namespace symm {

/// Limits a block's threads, so that this loop has the registers it needs.
inline constexpr unsigned kMostThreads = 512;

/// Where part `rank` of `total` packs begins; part `ranks` begins at the end.
__host__ __device__ inline std::size_t part_begin(std::size_t total, int rank, int ranks) {
    const auto parts = static_cast<std::size_t>(ranks);
    const auto before = static_cast<std::size_t>(rank);
    return total / parts * before + total % parts * before / parts;
}

/// `target[..][i]` becomes the reduction of `source[..][i]`, for all i from `begin` to `end`. The
/// first `sources` and `targets` of the arrays are used. `Pack` has a whole number of elements.
template <class T, class Pack, int kSources, int kTargets>
class PackReducer {
public:
    const Pack* source[kSources];
    Pack* target[kTargets];
    int sources;
    int targets;

    __host__ __device__ void operator()(const simt::ThreadBlock& block, std::size_t begin,
                                        std::size_t end, const Reduction& reduction) const {
        reduce(begin + block.grid_rank(), block.grid_size(), end, reduction);
    }

    /// The same for i = `first`, `first + step` and so on.
    __host__ __device__ void reduce(std::size_t first, std::size_t step, std::size_t end,
                                    const Reduction& reduction) const {
        std::size_t i = first;
        for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step) {
            reduce_at<kAtOnce>(i, step, reduction);
        }
        for (; i < end; i += step) {
            reduce_at<1>(i, step, reduction);
        }
    }

private:
    /// Packs of each source that a thread has in flight: enough bytes to cover the latency of a
    /// link. Narrow types are computed as wider ones, which takes more registers.
    static constexpr int kAtOnce = sizeof(Pack) < sizeof(simt::Pack16)
                                       ? 1
                                       : (kSources <= 2   ? 8
                                          : kSources <= 4 ? 4
                                                          : 2) /
                                             (sizeof(T) < sizeof(float) ? 2 : 1);

    /// kPacks packs: i, i + step, i + 2 step ...; `loaded[v][s]` is the v-th of source s.
    template <int kPacks>
    __host__ __device__ void reduce_at(std::size_t i, std::size_t step,
                                       const Reduction& reduction) const {
        Pack loaded[kPacks][kSources] = {};
        SYMM_UNROLL
        for (int v = 0; v < kPacks; ++v) {
            SYMM_UNROLL
            for (int s = 0; s < kSources; ++s) {  // all loads before the first use
                if (s < sources) {
                    loaded[v][s] = source[s][i + v * step];
                }
            }
        }
        reduction.with_reduce<T>([&](const auto& reduce) {
            SYMM_UNROLL
            for (int v = 0; v < kPacks; ++v) {
                const Pack pack = reduce(loaded[v], sources);
                SYMM_UNROLL
                for (int t = 0; t < kTargets; ++t) {
                    if (t < targets) {
                        target[t][i + v * step] = pack;
                    }
                }
            }
        });
    }
};

/// One element as a pack, for unaligned elements and those outside of whole packs.
template <class T>
struct One {
    T element;
};

}  // namespace symm
