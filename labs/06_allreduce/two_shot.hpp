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
#include "labs/06_allreduce/element.hpp"

namespace symm {

/// A buffer of all ranks: rank p's begins at `of_rank_0 + p * stride`.
struct SymmetricPointer {
    CUdeviceptr of_rank_0;
    std::size_t stride;  ///< Bytes.
    template <class T>
    __host__ __device__ T* peer(int rank) const {
        return reinterpret_cast<T*>(of_rank_0 + static_cast<std::size_t>(rank) * stride);
    }
};

/// What a call's kernel is given, whatever the type and the number of ranks.
struct TwoShotCall {
    SymmetricPointer in;  ///< `in` and `out` need only the alignment of an element; 16 is faster.
    SymmetricPointer out;
    std::size_t count;  ///< Elements.
    BarrierView view;
    simt::Timeout timeout;
};

/// The kernel.
template <class Element, int kRanks>
struct TwoShot : TwoShotCall {
    using Storage = typename Element::Storage;
    static constexpr int kPerPack = 4 * Element::kPerWord;
    /// Packs of each peer that a thread has in flight: enough bytes to cover the latency of a link.
    static constexpr int kUnroll = kRanks <= 2 ? 8 : kRanks <= 4 ? 4 : 2;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier barrier(block, view, timeout);
        if (!barrier.arrive_and_wait<simt::Order::kReleasedByStream>()) {
            return;
        }
        const bool aligned = (in.of_rank_0 | out.of_rank_0) % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kPerPack : 0;
        reduce_packs(block, part(packs, view.rank), part(packs, view.rank + 1));
        const std::size_t rest = count - packs * kPerPack;
        reduce_elements(block, packs * kPerPack + part(rest, view.rank),
                        packs * kPerPack + part(rest, view.rank + 1));
        if (barrier.arrive_and_wait()) {
            barrier.store_epoch();
        }
    }

private:
    /// Where part `rank` of `total` begins.
    __host__ __device__ static std::size_t part(std::size_t total, int rank) {
        return total / kRanks * rank + (total % kRanks) * rank / kRanks;
    }
    /// All ranks in this rank's order, itself first, so that not all ranks read from the same one
    /// at once.
    __host__ __device__ int peer(int step) const { return (view.rank + step) % kRanks; }

    __host__ __device__ void reduce_packs(const simt::ThreadBlock& block, std::size_t begin,
                                          std::size_t end) const {
        const simt::Pack16* source[kRanks];
        simt::Pack16* target[kRanks];
        SYMM_UNROLL
        for (int p = 0; p < kRanks; ++p) {
            source[p] = in.peer<const simt::Pack16>(peer(p));
            target[p] = out.peer<simt::Pack16>(peer(p));
        }
        const std::size_t step = block.grid_size();
        std::size_t i = begin + block.grid_rank();
        for (; i + (kUnroll - 1) * step < end; i += kUnroll * step) {
            reduce_at<kUnroll>(source, target, i, step);
        }
        for (; i < end; i += step) {
            reduce_at<1>(source, target, i, step);
        }
    }

    template <int kPacks>
    __host__ __device__ void reduce_at(const simt::Pack16* const (&source)[kRanks],
                                       simt::Pack16* const (&target)[kRanks], std::size_t i,
                                       std::size_t step) const {
        simt::Pack16 loaded[kPacks][kRanks];
        SYMM_UNROLL
        for (int v = 0; v < kPacks; ++v) {
            SYMM_UNROLL
            for (int p = 0; p < kRanks; ++p) {  // all loads before the first use
                loaded[v][p] = source[p][i + v * step];
            }
        }
        SYMM_UNROLL
        for (int v = 0; v < kPacks; ++v) {
            const simt::Pack16 pack = sum_of<Element>(loaded[v], kRanks);
            SYMM_UNROLL
            for (int p = 0; p < kRanks; ++p) {
                target[p][i + v * step] = pack;
            }
        }
    }

    /// The elements after the last whole pack, or all elements where a buffer is not aligned.
    __host__ __device__ void reduce_elements(const simt::ThreadBlock& block, std::size_t begin,
                                             std::size_t end) const {
        for (std::size_t i = begin + block.grid_rank(); i < end; i += block.grid_size()) {
            float sum = Element::to_float(in.peer<const Storage>(peer(0))[i]);
            SYMM_UNROLL
            for (int p = 1; p < kRanks; ++p) {
                sum += Element::to_float(in.peer<const Storage>(peer(p))[i]);
            }
            const Storage rounded = Element::from_float(sum);
            SYMM_UNROLL
            for (int p = 0; p < kRanks; ++p) {
                out.peer<Storage>(peer(p))[i] = rounded;
            }
        }
    }
};

}  // namespace symm
