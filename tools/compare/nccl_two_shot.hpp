#pragma once
/// \file
/// The two shots of two_shot.hpp once more, on NCCL's device API: the same loop, with NCCL's
/// pointers and NCCL's barrier. Lay the two files side by side.
///
/// The protocol and its reasons are those of the table in two_shot.hpp. The differences:
/// - NCCL's arrival is relaxed for `memory_order_acquire`, and a release for
///   `memory_order_acq_rel`.
/// - The barrier's destructor stores the epoch. NCCL zeroed it in ncclDevCommCreate.
/// - ncclGetLsaPointer loads the window's first address and stride from device memory. Ours are
///   parameters of the kernel.
/// - NCCL's waits have no limit: if a rank fails, the others' kernels do not end by themselves.
///
/// Needs the headers of NCCL 2.28.7 or newer; only nccl_device.cu includes this file.
///
/// Source: NCCL's docs/examples/06_device_api/01_allreduce_lsa, src/include/nccl_device.

#include <nccl_device.h>

#include <cstddef>

#include "common/simt/pack.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"

namespace symm {

/// Parameters of a call's kernel, for any type.
struct NcclTwoShotParams {
    ncclWindow_t in;  ///< Windows begin at multiples of NCCL_WIN_REQUIRED_ALIGNMENT, 4096.
    ncclWindow_t out;
    std::size_t count;  ///< Elements.
    Reduction reduction;
    ncclDevComm comm;
};

/// The kernel, for at most kMost ranks. It runs on GPUs only.
template <class T, int kMost>
struct NcclTwoShot : NcclTwoShotParams {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;

    __host__ __device__ void operator()([[maybe_unused]] const simt::ThreadBlock& block) const {
        NV_IF_TARGET(NV_IS_DEVICE, (on_gpu(block);))
    }

private:
    __device__ void on_gpu(const simt::ThreadBlock& block) const {
        const ncclCoopCta all_threads{};
        ncclLsaBarrierSession<ncclCoopCta> barrier(all_threads, comm, ncclTeamTagLsa{},
                                                   block.group_index());
        barrier.sync(all_threads, cuda::memory_order_acquire);
        const std::size_t packs = count / kElements;
        reduce_part<simt::Pack16>(block, 0, packs);
        // The elements after the last whole pack.
        reduce_part<One<T>>(block, packs * kElements, count - packs * kElements);
        barrier.sync(all_threads, cuda::memory_order_acq_rel);
    }

    /// This rank's part of `total` packs, which begin `begin` packs after the first.
    template <class Pack>
    __device__ void reduce_part(const simt::ThreadBlock& block, std::size_t begin,
                                std::size_t total) const {
        const int rank = comm.lsaRank;
        const int ranks = comm.lsaSize;
        // In this rank's order, itself first, so that not all ranks read from the same one at once.
        PackReducer<T, Pack, kMost, kMost> reducer;
        reducer.sources = reducer.targets = ranks;
        SYMM_UNROLL
        for (int step = 0; step < kMost; ++step) {
            const int peer = step < ranks ? (rank + step) % ranks : rank;
            const std::size_t offset = begin * sizeof(Pack);
            reducer.source[step] = static_cast<const Pack*>(ncclGetLsaPointer(in, offset, peer));
            reducer.target[step] = static_cast<Pack*>(ncclGetLsaPointer(out, offset, peer));
        }
        reducer(block, part_begin(total, rank, ranks), part_begin(total, rank + 1, ranks),
                reduction);
    }
};

}  // namespace symm
