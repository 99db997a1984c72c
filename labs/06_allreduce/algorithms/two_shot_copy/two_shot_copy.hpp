#pragma once
/// \file
/// AllReduce in two shots by the copy engine, for the largest sizes.
///
/// The copy engine is the part of a GPU that copies memory without its multiprocessors. Between two
/// H200s it moves 392 GB/s when it writes to the peer's memory; stores of kernels reach 366, and
/// two_shot.hpp, whose loads also cross the link, 343. But the engine only copies, and each copy
/// begins 4 us after the previous one.
///
/// So copies bring the inputs, and kernels store the sums. As in two_shot.hpp, rank p reduces part
/// p of all inputs. Its peers push their part p into its scratch memory, which has a slot for each
/// of them. A part is sent in two large pieces: while the second is copied, kernels already reduce
/// the first, and store it into all outputs. Rank r, in the caller's stream and in one more:
///
/// | step     | stream   | rank r does                                                        | waits for          |
/// |----------|----------|--------------------------------------------------------------------|--------------------|
/// | meet     | caller's | a rendezvous: outputs and scratch memory are free, and where the outputs are | all ranks |
/// | push k   | copies   | copies piece k of part p of its `in` into slot r of rank p, for all p | the meet, or the end of the previous round (event) |
/// | flag k   | copies   | copies the number of the round to rank p's `flag[k][r]`            | push k (stream)    |
/// | reduce k | caller's | reduces piece k of part r: its own `in` and its slots, to every rank's `out` | push k (event), `flag[k][p]` of all p (acquire) |
/// | end      | caller's | passes a barrier: no rank uses a peer's memory any more, and the sums are there | all ranks (release, acquire) |
///
/// - The meet and the end are kernels of one block (rendezvous.hpp, barrier.hpp). The end's arrival
///   is a release: it publishes the sums that earlier kernels of the stream have stored into its
///   peers' outputs.
/// - Copies of one stream run in order: the flag's copy begins when the data has arrived, even as
///   seen by a polling kernel of another GPU. (The hardware does this, and moves four bytes whole;
///   CUDA promises neither. MSCCL++ relies on it, too.)
/// - Rounds are counted in device memory, so a replayed graph waits for the right one, and no flag
///   is ever cleared.
/// - No deadlock, in whatever order a device runs the work that is ready: pushes k wait only for
///   the meet and pushes k - 1; reduce k for pushes k of all ranks, and reduce k - 1. No block
///   waits for another block of its rank.
/// - In place, reduce k overwrites piece k of part r of each rank's `in`. That piece has been sent
///   before, or it is this rank's own, and loaded before it is stored.
/// - The next call cannot overtake this one: it begins after the end, and by then no rank uses this
///   rank's scratch memory or output, and no copy reads its input.
/// - A call that is too large for scratch memory is done in rounds, each with an end.
///
/// A copy runs even if the wait before it gave up: an event shows that a kernel has ended, not that
/// it succeeded. So such a copy must do no harm:
///
/// - A copy writes to scratch memory only. Outputs are written by kernels, which store nothing once
///   a wait of their own rank has given up. Peers that have met a rank whose call has failed still
///   write to it, until their own calls have ended. (Pushing the sums by copies is a little faster,
///   but overwrites the output of a peer that has not called. Pulling them is slower: 1G moves
///   342 GB/s, not 366.)
/// - A push may overwrite a slot that its peer still reduces, if this rank gave up in the previous
///   round, or in a call by chunks (two_shot_chunks.hpp): then it has not seen that all ranks
///   reached the end. So at the end of a round a rank that has given up tells its peers, and any
///   other rank checks whether it was told.
/// - No flag gets the number of the round of such a push, since kernels send no signals once a wait
///   has given up: that call fails on all ranks.
///
/// Source: the arrangement is ours. NCCL has copy engine collectives that need no reduction
/// (src/ce_coll.cc).

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/cuda/driver.hpp"
#include "common/cuda/event.hpp"
#include "common/cuda/gpu.hpp"
#include "common/cuda/stream.hpp"
#include "labs/03_ipc/symmetric_range.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

/// Each rank's memory for these calls: symmetric, zeroed before the first use.
struct CopyMemory {
    static constexpr std::size_t kPieces = 2;  ///< Of a part.
    // Written by peers:
    std::uint32_t flag[kPieces][kMaxBarrierRanks];  ///< Their piece is here.
    std::uint32_t gave_up[kMaxBarrierRanks];        ///< Not 0: they gave up.
    // Written by this rank:
    std::uint32_t round;                ///< Its count, modulo 2^32.
    Buffers buffers[kMaxBarrierRanks];  ///< Of all ranks, in this call.
};

/// All ranks' CopyMemory.
struct CopyView {
    SymmetricPointer<CopyMemory> memory;
    int rank;  ///< This rank.
    int ranks;

    __host__ __device__ CopyMemory* peer(int which) const { return memory.of(which); }
    __host__ __device__ CopyMemory* local() const { return peer(rank); }

    /// Tells the peers that this rank gave up, before its next copies run.
    __host__ __device__ void tell_peers(const simt::ThreadBlock& block) const {
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            signal(&peer(p)->gave_up[rank], 1);
        }
    }
    /// Fails the call if a peer has told this rank that it gave up.
    __host__ __device__ void require_trust(const simt::ThreadBlock& block,
                                           const simt::Timeout& timeout) const {
        for (int p = 0; p < ranks && block.thread_rank() == 0; ++p) {
            if (simt::load(&local()->gave_up[p], simt::Order::kRelaxed) != 0) {
                simt::Waiter(timeout).fail({simt::Wait::kTrust, rank, p, 0}, 1);
            }
        }
    }
};

/// The kernel of the meet: begins the first round.
struct Meet {
    Rendezvous rendezvous;
    CopyView memory;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (rendezvous.meet(block, timeout, memory.local()->buffers) && block.thread_rank() == 0) {
            ++memory.local()->round;
        }
    }
};

/// The kernel of the end of a round: begins the next one.
struct EndOfRound {
    BarrierView barrier;
    CopyView memory;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        Barrier end(block, barrier, timeout);
        if (!end.arrive_and_wait()) {
            memory.tell_peers(block);
            return;
        }
        end.store_epoch();
        if (block.thread_rank() == 0) {
            ++memory.local()->round;
        }
        memory.require_trust(block, timeout);
    }
};

/// Parameters of the kernel that reduces a piece, for any type.
struct ReducePieceCall {
    CUdeviceptr in;            ///< The piece in this rank's input.
    std::size_t begin;         ///< Of the piece, in every output: bytes.
    std::size_t count;         ///< Elements.
    CUdeviceptr arrived;       ///< The peers' pieces, in their order,
    std::size_t slot_bytes;    ///< this many bytes apart.
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
        CUdeviceptr bits = in | arrived | slot_bytes;
        for (int p = 0; p < ranks; ++p) {
            bits |= output_of(p);
        }
        constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
        const bool aligned = bits % sizeof(simt::Pack16) == 0;
        const std::size_t packs = aligned ? count / kElements : 0;
        reduce<simt::Pack16>(block, 0, packs);
        // The elements after the last whole pack, or all if a buffer is not aligned.
        reduce<One<T>>(block, packs * kElements, count);
    }

private:
    __host__ __device__ bool wait_for_peers(const simt::ThreadBlock& block) const {
        simt::Waiter waiter(timeout);
        const std::uint32_t round = memory->round;
        bool arrived = true;
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            if (p != rank) {
                arrived &= wait_signal(waiter, &memory->flag[piece][p],
                                       {simt::Wait::kSignal, rank, p, round});
            }
        }
        return AbortBarrier(block).sync(arrived);
    }

    __host__ __device__ CUdeviceptr output_of(int p) const {
        return memory->buffers[p].out + begin;
    }

    template <class Pack>
    __host__ __device__ void reduce(const simt::ThreadBlock& block, std::size_t first,
                                    std::size_t last) const {
        PackReducer<T, Pack, kMost, kMost> reducer;
        reducer.sources = reducer.targets = ranks;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            const auto before = static_cast<std::size_t>(p < rank ? p : p - 1);
            reducer.source[p] = reinterpret_cast<const Pack*>(
                p == rank || p >= ranks ? in : arrived + before * slot_bytes);
            // In this rank's order, so that not all ranks write to the same one at once.
            reducer.target[p] =
                reinterpret_cast<Pack*>(output_of(p < ranks ? (rank + p) % ranks : rank));
        }
        reducer(block, first, last, reduction);
    }
};

/// Bytes of scratch memory for one peer's part: enough for calls of 1 GiB (512 KiB on emulated
/// GPUs), and a little more.
inline std::size_t copy_slot_bytes(int ranks) {
    const std::size_t unit = std::size_t{1} << (is_emulated() ? 9 : 20);
    return (1024 / static_cast<std::size_t>(std::max(ranks, 2)) + 1) * unit;
}

/// A rank's side: its scratch memory, and the stream of its copies.
class TwoShotCopy {
public:
    /// Bytes of scratch memory on each rank.
    static std::size_t scratch_bytes(int ranks) {
        return static_cast<std::size_t>(std::max(ranks - 1, 1)) * copy_slot_bytes(ranks);
    }

    /// The rank must outlive it. `scratch`: scratch_bytes() or more.
    TwoShotCopy(Rank& rank, SymmetricPointer<CopyMemory> memory, SymmetricRange scratch);

    /// Throws std::invalid_argument if a call on the stream would not be captured, but an earlier
    /// one is being captured.
    void require_turn(CUstream stream) const;
    /// Queues a call on the stream, which has its turn. Throws CudaError.
    void queue(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call);

    const CopyView& memory() const { return memory_; }
    const SymmetricRange& scratch() const { return scratch_; }
    std::size_t slot_bytes() const;

private:
    void queue_round(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call,
                     std::size_t begin, std::size_t bytes);
    /// The slot of rank `sender` in the scratch memory of rank `receiver`.
    CUdeviceptr slot(int receiver, int sender) const;

    Rank& rank_;
    CopyView memory_;
    SymmetricRange scratch_;
    Stream copies_;
    Event met_{CU_EVENT_DISABLE_TIMING};
    std::array<Event, CopyMemory::kPieces> pushed_{Event(CU_EVENT_DISABLE_TIMING),
                                                   Event(CU_EVENT_DISABLE_TIMING)};
};

}  // namespace symm
