#pragma once
/// \file
/// AllReduce in two shots by the copy engine, for the largest sizes.
///
/// The copy engine is the part of a GPU that copies memory without its multiprocessors. Between two
/// H200s it moves 392 GB/s when it pushes (writes into the peer's memory) and 373 when it pulls;
/// stores of kernels reach 366. But it only copies, and each copy begins 4 us after the one before
/// has ended.
///
/// As in two_shot.hpp, rank p reduces part p of all inputs. Its peers push their part p into its
/// scratch memory, which has a slot for each of them. A part is sent in two large pieces, so that
/// kernels reduce the first while the second is copied. Rank r, in the caller's stream and in one
/// more:
///
/// | step     | stream   | rank r does                                                        | waits for          |
/// |----------|----------|--------------------------------------------------------------------|--------------------|
/// | meet     | caller's | a rendezvous: inputs are written, outputs and scratch memory free, outputs where they should be | all ranks |
/// | push k   | copies   | copies piece k of part p of its `in` into slot r of rank p, for all p | the meet (event) |
/// | flag k   | copies   | copies the number of the round to rank p's `flag[k][r]`            | push k (stream)    |
/// | reduce k | caller's | reduces piece k of part r: its own `in` and its slots, to `out`    | `flag[k][p]` of all p (acquire) |
/// | barrier k | copies  | tells all ranks that its piece k is reduced, waits for theirs (release, acquire) | reduce k (event), all ranks |
/// | gather k | copies   | copies piece k of part p of rank p's `out` to its own `out`, for all p | barrier k (stream) |
/// | end      | caller's | passes a barrier: nobody uses another's memory any more            | gathers (event), all ranks |
///
/// - The host queues the gathers before the ranks meet, so it has to know where the outputs are: at
///   the same offset of the same window on all ranks, which the caller has promised
///   (WindowKind::kSymmetric). Where a rank breaks this promise, the meet gives up.
/// - The meet, the barriers and the end are kernels of one block (rendezvous.hpp, barrier.hpp).
///   They have written nothing before they arrive, so their arrivals may be relaxed: the end of the
///   stream's earlier work has released that.
/// - Copies of one stream are done in their order: the flag's copy begins when the data have
///   arrived. Rounds are counted in device memory, so a replayed graph waits for the right one, and
///   no flag is ever cleared.
/// - No deadlock: pushes wait for nobody after the meet; so all flags come, all pieces are reduced,
///   all ranks reach their barriers. A reduction's blocks may be as many as the communicator keeps
///   resident (residency.hpp); what they wait for needs no multiprocessor.
/// - In place, gather k overwrites piece k of part p of this rank's `in`. It has been sent before:
///   rank p has reduced it.
/// - The next call cannot overtake this one: it begins after the end, and by then nobody uses this
///   rank's scratch memory or output.
/// - What scratch memory does not hold is done in rounds, each with an end.
///
/// A copy runs even where the wait before it gave up: an event says that a kernel has ended, not
/// that it succeeded. So no copy may do harm then:
///
/// - A gather writes to its own rank's output, and that rank's call has failed; so it does not
///   matter that its peer may be writing what it reads. (Pushed gathers would be faster, 392 GB/s
///   instead of 373. But they would overwrite a peer's output that the peer may still be using,
///   with what was never reduced.)
/// - A push may overwrite a slot that its peer still reduces for an earlier call, if this rank gave
///   up at the end of that call, or at this meet. So a rank that gives up there tells its peers
///   before its next push, and a rank looks for that at the end of each round.
/// - A flag then has the number of the round before. Kernels signal nobody once a wait has given
///   up. So the call fails on all ranks.
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
#include "labs/06_allreduce/algorithms/two_shot/reduce_packs.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

/// What each rank keeps for these calls, in symmetric memory, zeroed before the first use.
struct CopyMemory {
    static constexpr std::size_t kPieces = 2;  ///< Of a part.
    // Written by peers:
    std::uint32_t flag[kPieces][kMaxBarrierRanks];     ///< Their piece is here.
    std::uint32_t reduced[kPieces][kMaxBarrierRanks];  ///< Their piece is reduced, there.
    std::uint32_t gave_up[kMaxBarrierRanks];           ///< Not 0: they gave up.
    std::uint32_t round;                               ///< This rank's count, modulo 2^32.
};

/// All ranks' CopyMemory.
struct CopyView {
    SymmetricPointer<CopyMemory> memory;
    int rank;  ///< This rank.
    int ranks;

    __host__ __device__ CopyMemory* peer(int which) const { return memory.of(which); }
    __host__ __device__ CopyMemory* local() const { return peer(rank); }
    /// Before this rank's next copies run.
    __host__ __device__ void tell_that_it_gave_up(const simt::ThreadBlock& block) const {
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            signal(&peer(p)->gave_up[rank], 1);
        }
    }
};

/// The kernel of the meet: begins the first round.
struct Meet {
    static constexpr unsigned kSharedBytes = kMaxBarrierRanks * sizeof(Buffers);
    Rendezvous rendezvous;
    std::size_t out_stride;  ///< From one rank's output to the next, bytes.
    CopyView memory;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        auto* const all = block.shared<Buffers>();
        if (!rendezvous.meet(block, timeout, all)) {
            memory.tell_that_it_gave_up(block);
        } else if (block.thread_rank() == 0) {
            ++memory.local()->round;
            for (int p = 0; p < rendezvous.ranks; ++p) {
                require_offset(p, all[p].out);
            }
        }
    }

private:
    __host__ __device__ void require_offset(int p, CUdeviceptr out) const {
        const int r = rendezvous.rank;
        const CUdeviceptr expected =
            rendezvous.mine[r].out + static_cast<CUdeviceptr>(p - r) * out_stride;
        if (out != expected) {
            simt::Waiter(timeout).fail({simt::Wait::kOffset, r, p, expected}, out);
        }
    }
};

/// The kernel of the barrier between the reductions of a piece and its gathers.
struct PieceBarrier {
    CopyView memory;
    std::size_t piece;
    simt::Timeout timeout;

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        const auto [all, rank, ranks] = memory;
        const int begin = static_cast<int>(block.thread_rank());
        const int step = static_cast<int>(block.size());
        const std::uint32_t round = memory.local()->round;
        simt::Waiter waiter(timeout);
        for (int p = begin; p < ranks && !waiter.gave_up(); p += step) {
            signal<simt::Order::kReleasedByStream>(&memory.peer(p)->reduced[piece][rank], round);
        }
        for (int p = begin; p < ranks; p += step) {
            wait_signal(waiter, &memory.local()->reduced[piece][p],
                        {simt::Wait::kBarrier, rank, p, round});
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
        if (!end.arrive_and_wait<simt::Order::kReleasedByStream>()) {
            memory.tell_that_it_gave_up(block);
            return;
        }
        end.store_epoch();
        if (block.thread_rank() == 0) {
            ++memory.local()->round;
            for (int p = 0; p < memory.ranks; ++p) {
                require_trust(p);
            }
        }
    }

private:
    __host__ __device__ void require_trust(int p) const {
        if (simt::load(&memory.local()->gave_up[p], simt::Order::kRelaxed) != 0) {
            simt::Waiter(timeout).fail({simt::Wait::kTrust, memory.rank, p, 0}, 1);
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

    /// Collective; the rank must outlive it.
    TwoShotCopy(Rank& rank, SymmetricPointer<CopyMemory> memory,
                std::size_t scratch = scratch_bytes());

    /// Queues a call on the stream. The outputs of all ranks lie `out_stride` bytes apart. Throws
    /// CudaError.
    void queue(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call,
               std::size_t out_stride);

private:
    void queue_round(CUstream stream, LaunchShape shape, DataType type, const TwoShotCall& call,
                     std::size_t out_stride, std::size_t begin, std::size_t bytes);
    /// The bytes of rank `sender` in the scratch memory of rank `receiver`.
    CUdeviceptr slot(int receiver, int sender) const;
    std::size_t slot_bytes() const;

    Rank& rank_;
    CopyView memory_;
    SymmetricRange scratch_;
    Stream copies_;
    Event met_{CU_EVENT_DISABLE_TIMING};
    Event gathered_{CU_EVENT_DISABLE_TIMING};
    std::array<Event, CopyMemory::kPieces> reduced_{Event(CU_EVENT_DISABLE_TIMING),
                                                    Event(CU_EVENT_DISABLE_TIMING)};
};

}  // namespace symm
