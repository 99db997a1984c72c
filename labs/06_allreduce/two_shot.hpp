#pragma once
/// \file
/// AllReduce in two shots, without a copy: each rank reads its part of every rank's input, adds it
/// up, and writes the sum into every rank's output.
///
/// Every byte crosses a link twice, the least that is possible unless the switch adds up. Both
/// buffers must lie in windows: the kernel reads its peers' inputs and writes their outputs in
/// place. Block b of rank r:
///
/// | does            | to what                      | order            | why                                |
/// |-----------------|------------------------------|------------------|------------------------------------|
/// | first barrier   | block b of all ranks         | relaxed, acquire | inputs are written and outputs free: see below |
/// | loads part r    | every rank's `in`            | plain            | after the acquire of the first barrier |
/// | stores the sums | part r of every rank's `out` | plain            | before the release of the second barrier |
/// | second barrier  | block b of all ranks         | release, acquire | all of `out` is written, no rank reads `in` any more |
///
/// - The first barrier's arrival is relaxed: the end of the earlier kernels of the stream has
///   released their writes (barrier.hpp).
/// - No deadlock: see barrier.hpp; the launch keeps all blocks of all ranks resident at once.
/// - The next call cannot overtake this one: a rank's kernel ends after all its blocks have met
///   those of all peers in the second barrier, so its next kernel finds no peer that still reads or
///   writes for this call.
/// - In-place calls need nothing else: only rank r reads part r of any buffer, and it loads before
///   it stores.
/// - Part r is added up by rank r alone: all ranks agree to the last bit.
///
/// Source: NCCL's src/device/symmetric/all_reduce.cuh (RSxLD_AGxST).

#include <cuda.h>

#include <cstddef>

#include "common/simt/pack.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/reduce_packs.hpp"

namespace symm {

/// A buffer of all ranks: rank p's begins at `of_rank_0 + p * stride`.
struct SymmetricPointer {
    CUdeviceptr of_rank_0;
    std::size_t stride;  ///< Bytes.
    __host__ __device__ CUdeviceptr address(int rank) const {
        return of_rank_0 + static_cast<std::size_t>(rank) * stride;
    }
    template <class T>
    __host__ __device__ T* peer(int rank) const {
        return reinterpret_cast<T*>(address(rank));
    }
};

/// What a call's kernel is given, whatever the type.
struct TwoShotCall {
    SymmetricPointer in;  ///< `in` and `out` need only the alignment of an element; 16 is faster.
    SymmetricPointer out;
    std::size_t count;  ///< Elements.
    Reduction reduction;
    BarrierView view;
    simt::Timeout timeout;
};

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct TwoShot : TwoShotCall {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier barrier(block, view, timeout);
        if (!barrier.arrive_and_wait<simt::Order::kReleasedByStream>()) {
            return;
        }
        const bool aligned = (in.of_rank_0 | out.of_rank_0) % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kElements : 0;
        reduce_part<simt::Pack16>(block, 0, packs);
        // The elements after the last whole pack, or all where a buffer is not aligned.
        reduce_part<One<T>>(block, packs * kElements, count - packs * kElements);
        if (barrier.arrive_and_wait()) {
            barrier.store_epoch();
        }
    }

private:
    /// This rank's part of `total` packs, which begin `begin` packs behind the first.
    template <class Pack>
    __host__ __device__ void reduce_part(const simt::ThreadBlock& block, std::size_t begin,
                                         std::size_t total) const {
        // In this rank's order, itself first, so that not all ranks read from the same one at once.
        PackReducer<T, Pack, kMost, kMost> reducer;
        reducer.sources = reducer.targets = view.ranks;
        SYMM_UNROLL
        for (int step = 0; step < kMost; ++step) {
            const int peer = step < view.ranks ? (view.rank + step) % view.ranks : view.rank;
            reducer.source[step] = in.peer<const Pack>(peer) + begin;
            reducer.target[step] = out.peer<Pack>(peer) + begin;
        }
        reducer(block, part(total, view.rank), part(total, view.rank + 1), reduction);
    }

    /// Where part `rank` of `total` begins.
    __host__ __device__ std::size_t part(std::size_t total, int rank) const {
        const auto ranks = static_cast<std::size_t>(view.ranks);
        const auto before = static_cast<std::size_t>(rank);
        return total / ranks * before + total % ranks * before / ranks;
    }
};

}  // namespace symm
