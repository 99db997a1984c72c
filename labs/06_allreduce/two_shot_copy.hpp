#pragma once
/// \file
/// AllReduce in two shots by the copy engine, for the largest sizes.
///
/// Between two H200s the copy engine moves 392 GB/s when it pushes (writes into the peer's memory)
/// and 373 when it pulls; stores of kernels reach 366. But it only copies, and each copy begins
/// 4 us after the one before has ended. So pieces are few and large, and kernels reduce one piece
/// while the next one is copied. Rank r, in the caller's stream and in one more:
///
/// | step     | stream   | rank r does                                                        | waits for          |
/// |----------|----------|--------------------------------------------------------------------|--------------------|
/// | meet     | caller's | passes a barrier: inputs are written, outputs and scratch memory are free | all ranks   |
/// | push k   | copies   | copies piece k of part p of its `in` into slot r of rank p, for all p | the meet (event) |
/// | flag k   | copies   | copies the number of the meet to rank p's `flag[k][r]`             | push k (stream)    |
/// | reduce k | caller's | reduces piece k of part r: its own `in` and its slots, to `out`    | `flag[k][p]` of all p (acquire) |
/// | gather k | copies   | copies piece k of part r of `out` to all ranks' `out`              | reduce k (event)   |
/// | meet     | caller's | passes a barrier: nobody writes to another's memory any more       | gathers (event), all ranks |
///
/// - A meet is a kernel of one block that passes one barrier (barrier.hpp). It has written nothing,
///   so its arrival may be relaxed: the end of the stream's earlier work has released that.
/// - Copies of one stream are done in their order: the flag's copy begins when the data have
///   arrived. A flag is the number of a meet, which counts on in device memory, so a replayed graph
///   waits for the right one, and no flag is ever cleared.
/// - No deadlock: pushes wait for nobody after the meet; so all flags come, all pieces are reduced,
///   all gathers are done. A reduction's blocks may be as many as the communicator keeps resident
///   (residency.hpp); what they wait for needs no multiprocessor.
/// - In place, gather k overwrites piece k of part r of a peer's `in`. The peer has sent it before:
///   rank r has just reduced it.
/// - The next call cannot overtake this one: it begins behind the last meet, and after that nobody
///   writes to this rank's scratch memory or output.
/// - What scratch memory does not hold is done in rounds; the meet between two rounds is the last
///   of one and the first of the other.
/// - Where a wait gives up, the meets behind it signal nobody, so this call fails on all ranks.
///
/// Source: the arrangement is ours. NCCL has copy engine collectives that need no reduction
/// (src/ce_coll.cc).

#include <cuda.h>

#include <array>
#include <cstddef>

#include "common/cuda/event.hpp"
#include "common/cuda/gpu.hpp"
#include "common/cuda/stream.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/reduce_packs.hpp"
#include "labs/06_allreduce/two_shot.hpp"

namespace symm {

/// What each rank keeps for these calls, in symmetric memory, zeroed before the first use.
struct CopyMemory {
    static constexpr std::size_t kPieces = 2;  ///< Of a part.
    BarrierMemory meets;
    std::uint32_t flag[kPieces][kMaxBarrierRanks];
};

/// The meet's kernel.
struct Meet {
    BarrierView view;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier barrier(block, view, timeout);
        if (barrier.arrive_and_wait<simt::Order::kReleasedByStream>()) {
            barrier.store_epoch();
        }
    }
};

/// What the kernel that reduces a piece is given, whatever the type.
struct ReducePieceCall {
    CUdeviceptr in;  ///< This rank's.
    CUdeviceptr out;
    std::size_t count;         ///< Elements.
    CUdeviceptr arrived;       ///< What the peers have sent, in their order,
    std::size_t slot_bytes;    ///< each so many bytes behind the one before.
    const CopyMemory* memory;  ///< This rank's.
    std::size_t piece;
    Reduction reduction;
    simt::Timeout timeout;
    int rank;
    int ranks;
};

/// The kernel, for at most kMost ranks.
template <class T, int kMost>
struct ReducePiece : ReducePieceCall {
    static constexpr unsigned kMaxThreads = kMostThreads;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (!wait_for_peers(block)) {
            return;
        }
        constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
        const bool aligned = (in | out | arrived | slot_bytes) % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kElements : 0;
        reduce<simt::Pack16>(block, 0, packs);
        // The elements after the last whole pack, or all where a buffer is not aligned.
        reduce<One<T>>(block, packs * kElements, count);
    }

private:
    __host__ __device__ bool wait_for_peers(const simt::ThreadBlock& block) const {
#ifdef SYMM_MUTANT_COPY_WAIT_RELAXED  // the data may be read before the flag
        constexpr simt::Order kOrder = simt::Order::kRelaxed;
#else
        constexpr simt::Order kOrder = simt::Order::kAcquire;
#endif
        simt::Waiter waiter(timeout);
        const std::uint32_t epoch = memory->meets.epoch[0];
        bool arrived = true;
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            if (p != rank) {
                arrived &= wait_signal<kOrder>(waiter, &memory->flag[piece][p],
                                               {simt::Wait::kSignal, rank, p, epoch});
            }
        }
#ifdef SYMM_MUTANT_COPY_NO_SYNC  // other threads read before the data are there
        return arrived;
#else
        return !block.sync_or(!arrived);
#endif
    }

    template <class Pack>
    __host__ __device__ void reduce(const simt::ThreadBlock& block, std::size_t begin,
                                    std::size_t end) const {
        PackReducer<T, Pack, kMost, 1> reducer;
        reducer.sources = ranks;
        reducer.targets = 1;
        reducer.target[0] = reinterpret_cast<Pack*>(out);
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {  // this rank's own first, then its peers'
            const auto before = static_cast<std::size_t>(p < ranks ? p - 1 : 0);
            reducer.source[p] =
                reinterpret_cast<const Pack*>(p == 0 ? in : arrived + before * slot_bytes);
        }
        reducer(block, begin, end, reduction);
    }
};

/// A rank's side: its scratch memory, and the stream of its copies.
class TwoShotCopy {
public:
    /// Bytes of scratch memory on each rank, whatever the number of ranks.
    static std::size_t scratch_bytes();

    /// `memory` is rank 0's, `stride` the distance to the next rank's in bytes. Collective; the
    /// rank must outlive it.
    TwoShotCopy(Rank& rank, CopyMemory* memory, std::size_t stride,
                std::size_t scratch = scratch_bytes());

    /// Queues a call on the stream. `call.view` is not used. Throws CudaError.
    void queue(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call);

private:
    void queue_round(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call,
                     std::size_t begin, std::size_t bytes);
    CopyMemory* memory(int rank) const;
    /// The bytes of rank `sender` in the scratch memory of rank `receiver`.
    CUdeviceptr slot(int receiver, int sender) const;
    std::size_t slot_bytes() const;

    Rank& rank_;
    CopyMemory* first_;
    std::size_t stride_;
    SymmetricRange scratch_;
    Stream copies_;
    Event met_{CU_EVENT_DISABLE_TIMING};
    Event gathered_{CU_EVENT_DISABLE_TIMING};
    std::array<Event, CopyMemory::kPieces> reduced_{Event(CU_EVENT_DISABLE_TIMING),
                                                    Event(CU_EVENT_DISABLE_TIMING)};
};

}  // namespace symm
