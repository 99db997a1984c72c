#pragma once
/// \file
/// AllReduce in two shots, without a copy: each rank reads its part of every rank's input, adds it
/// up, and writes the sum into every rank's output. Both lie in windows. The lab's page has the
/// proof. Block b of rank r:
///
/// | does            | to what                      | order            | why                                |
/// |-----------------|------------------------------|------------------|------------------------------------|
/// | rendezvous      | block b of all ranks         | relaxed, acquire | where their buffers are; inputs are written and outputs free (rendezvous.hpp) |
/// | loads part r    | every rank's `in`            | plain            | after the acquire of the rendezvous |
/// | stores the sums | part r of every rank's `out` | plain            | before the release of the barrier  |
/// | barrier         | block b of all ranks         | release, acquire | all of `out` is written, no rank reads `in` any more (barrier.hpp) |

#include <cstddef>

#include "common/simt/pack.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/call.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"
#include "labs/06_allreduce/algorithms/two_shot/rendezvous.hpp"

namespace symm {

/// Parameters of a call's kernel, for any type. The other collectives have one source or one target
/// (reduce_scatter_all_gather/README.md).
struct TwoShotParams : KernelParams {
    static constexpr int kEvery = -1;
    /// The only rank that holds this rank's part, or kEvery.
    static int only(Holders holders, int rank, int root) {
        return holders == Holders::kAll ? kEvery : holders == Holders::kOwner ? rank : root;
    }

    Rendezvous rendezvous;
    BarrierView barrier;
    int source = kEvery;  ///< The only rank whose input counts.
    int target = kEvery;  ///< The only rank whose output is written.
    bool divides = true;  ///< Into a part for each rank. Else `all` points to this rank's part.

    /// Whether peers cannot reach the root's buffer. Then the root moves everything. It knows that
    /// by what it told another rank.
    __host__ __device__ bool is_roots_alone(const Buffers* all) const {
        if (!divides || (source == kEvery && target == kEvery)) {
            return false;
        }
        const Buffers& roots = rank == root ? rendezvous.mine[rank == 0 ? 1 : 0] : all[root];
        return (source != kEvery ? roots.in : roots.out) == kUnseen;
    }
};

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct TwoShot : TwoShotParams {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;
    static constexpr unsigned kSharedBytes = kMost * sizeof(Buffers);

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        auto* const all = block.shared<Buffers>();
        if (!rendezvous.meet(block, timeout, all)) {
            return;
        }
        CUdeviceptr bits = 0;
        for (int p = 0; p < ranks; ++p) {
            bits |= all[p].in | all[p].out;
        }
        // Equal on all ranks, so parts match: a buffer's mappings differ by whole granules.
        const bool aligned = bits % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kElements : 0;
        reduce_part<simt::Pack16>(block, all, 0, packs);
        // The elements after the last whole pack, or all if a buffer is not aligned.
        reduce_part<One<T>>(block, all, packs * kElements, count - packs * kElements);
        Barrier end(block, barrier, timeout);
        if (end.arrive_and_wait()) {
            end.store_epoch();
        }
    }

    /// This rank's part of `total` packs, which begin `begin` packs after the first.
    template <class Pack>
    __host__ __device__ void reduce_part(const simt::ThreadBlock& block, const Buffers* all,
                                         std::size_t begin, std::size_t total) const {
        PackReducer<T, Pack, kMost, kMost> reducer;
        reducer.sources = source == kEvery ? ranks : 1;
        reducer.targets = target == kEvery ? ranks : 1;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            const int from = source != kEvery ? source : p < ranks ? p : rank;
            // In this rank's order, so that not all ranks write to the same one at once.
            const int to = target != kEvery ? target : p < ranks ? peer(p) : rank;
            reducer.source[p] = reinterpret_cast<const Pack*>(all[from].in + begin * sizeof(Pack));
            reducer.target[p] = reinterpret_cast<Pack*>(all[to].out + begin * sizeof(Pack));
        }
        if (is_roots_alone(all)) {
            reducer(block, 0, rank == root ? total : 0, reduction);
        } else {
            reducer(block, divides ? part_begin(total, rank, ranks) : 0,
                    divides ? part_begin(total, rank + 1, ranks) : total, reduction);
        }
    }
};

}  // namespace symm
