#pragma once
/// \file
/// AllReduce in two shots that only store: inputs are pushed in chunks, and a flag follows each.
///
/// A load crosses the link twice, as a request and as data; a store crosses it once. Between two
/// H100s loads move 337 GB/s, and stores 366. two_shot.hpp loads its peers' inputs. Here each rank
/// pushes them instead, as in two_shot_copy.hpp and into the same scratch memory: rank p, which
/// adds up part p, has a slot for each peer's part p.
///
/// A part is cut into chunks. Block b of every rank serves chunks b, b + G, b + 2G ... of all parts
/// (G: blocks of the grid). Step i of block b of rank r, where c is the block's i-th chunk:
///
/// | step       | who         | does                                    | to what                   | order   | why |
/// |------------|-------------|-----------------------------------------|---------------------------|---------|-----|
/// | rendezvous | all threads | meet block b of all ranks               |                           | acquire | scratch memory and outputs are free, and where the outputs are (rendezvous.hpp) |
/// | push i     | all threads | store chunk c of part p of `in`, for all peers p | slot r of rank p | plain   | before the release |
/// | tell i     | thread p, after `block.sync()` | stores the number of the step | rank p's `sent[b][r]` | release | rank p may read the chunk after it |
/// | wait i     | thread p    | polls until that number is reached      | its own `sent[b][p]`      | acquire | |
/// | wait i     | all threads | `AbortBarrier::sync`                    |                           | block   | no thread reads before all chunks are there, or all leave |
/// | reduce i   | all threads | add up chunk c of part r: its own `in` and its slots | every rank's `out` | plain | before the release of the barrier |
/// | end        | all threads | pass a barrier with block b of all ranks |                          | release, acquire | all sums are there, and the slots have been read |
///
/// A block pushes chunk i + 1 before it waits for chunk i: while one is on its way, the other is
/// added up.
///
/// - No deadlock: in step i a block waits for push i of block b of its peers, and each of them
///   makes push i before it waits in step i. No block waits for another one of its rank. All
///   blocks of all ranks run at the same time.
/// - No chunk is overwritten: within a call each has a place of its own, so there is no flow
///   control.
/// - The next call cannot overtake this one: a rank's next kernel begins when all its blocks have
///   passed the end, and each block pushes only after a rendezvous with its peers' next kernels.
/// - No old flag passes for a new one: each block counts its steps in device memory, from call to
///   call, and flags only grow. Parts may differ in length, but all ranks make as many steps as the
///   longest part needs. Numbers may wrap.
/// - In place: block b of rank r overwrites chunk c of part r in rank p's `in` when it has that
///   chunk from rank p; its own it loads before it stores.
/// - The scratch memory is shared with two_shot_copy.hpp, whose copies run even after a rank gave
///   up. So a rank that gives up tells its peers, and each block that passes the end checks whether
///   it was told, as there. If it was, the rank's other blocks may leave before they reach the end,
///   and then the other peers fail, too.
/// - Elements after the last whole pack, or all if a buffer is not aligned, take the way of
///   two_shot.hpp: their rank loads them from its peers.
///
/// `./lab explore chunks` runs every execution that the memory model allows.
/// Source: ours. Data, then a flag with release, is NCCL's protocol Simple
/// (src/device/prims_simple.h).

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"
#include "labs/06_allreduce/algorithms/two_shot_copy/two_shot_copy.hpp"

namespace symm {

/// Each rank's memory for these calls: symmetric, zeroed before the first use.
struct ChunksMemory {
    /// Written by peers: `sent[b][r]` by block b of rank r.
    alignas(64) std::uint32_t sent[kMaxBarrierBlocks][kMaxBarrierRanks];
    /// Written by this rank: steps that each block has made, modulo 2^32.
    std::uint32_t steps[kMaxBarrierBlocks];
};

/// Parameters of a call's kernel, for any type.
struct ChunksCall : TwoShotCall {
    SymmetricPointer<ChunksMemory> memory;
    CopyView copy;                           ///< Who gave up.
    SymmetricPointer<simt::Pack16> scratch;  ///< `[ranks - 1][slot]` packs of each rank.
    std::size_t slot;                        ///< At least a part: packs.
    unsigned chunk;                          ///< Packs, at least 1.
};

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct TwoShotChunks : ChunksCall {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;
    static constexpr unsigned kSharedBytes = kMost * sizeof(Buffers);

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (all_reduce(block)) {
            copy.require_trust(block, timeout);
        } else {
            copy.tell_peers(block);
        }
    }

private:
    /// Packs that a thread has in flight for each peer.
    static constexpr int kAtOnce = kMost <= 2 ? 8 : kMost <= 4 ? 4 : 2;

    /// How the packs are cut into parts. The last parts may have fewer, or none.
    struct Cut {
        std::size_t packs;
        std::size_t per_part;

        /// The number of pack j of part p in the data.
        __host__ __device__ std::size_t pack(int p, std::size_t j) const {
            return static_cast<std::size_t>(p) * per_part + j;
        }
        /// The end of a chunk of part p that would end at pack j of it, if the part were that long.
        __host__ __device__ std::size_t end(int p, std::size_t j) const {
            const std::size_t begin = pack(p, 0);
            const std::size_t left = begin < packs ? packs - begin : 0;
            const std::size_t length = left < per_part ? left : per_part;
            return j < length ? j : length;
        }
    };

    /// False, on all threads of the block, if one gave up.
    __host__ __device__ bool all_reduce(const simt::ThreadBlock& block) const {
        auto* const all = block.shared<Buffers>();
        if (!rendezvous.meet(block, timeout, all)) {
            return false;
        }
        const std::size_t packs = are_aligned(all, rendezvous.ranks) ? count / kElements : 0;
        if (!reduce_chunks(block, all, packs)) {
            return false;
        }
        TwoShot<T, kMost>{*this}.template reduce_part<One<T>>(block, all, packs * kElements,
                                                              count - packs * kElements);
        Barrier end(block, barrier, timeout);
        if (!end.arrive_and_wait()) {
            return false;
        }
        end.store_epoch();
        return true;
    }

    /// Equal on all ranks: a buffer's mappings differ by whole granules.
    __host__ __device__ static bool are_aligned(const Buffers* all, int ranks) {
        CUdeviceptr bits = 0;
        for (int p = 0; p < ranks; ++p) {
            bits |= all[p].in | all[p].out;
        }
        return bits % sizeof(simt::Pack16) == 0;
    }

    /// All steps of the block.
    __host__ __device__ bool reduce_chunks(const simt::ThreadBlock& block, const Buffers* all,
                                           std::size_t packs) const {
        const auto parts = static_cast<std::size_t>(rendezvous.ranks);
        const Cut cut{packs, (packs + parts - 1) / parts};
        const unsigned b = block.group_index();
        std::uint32_t* const made = &memory.of(rendezvous.rank)->steps[b];
        const std::uint32_t before = *made;
        const std::size_t stride = std::size_t{block.dim_blocks()} * chunk;
        simt::Waiter waiter(timeout);
        AbortBarrier together(block);
        std::uint32_t step = before;
        const std::size_t first = std::size_t{b} * chunk;
        if (first < cut.per_part) {
            push(block, all, cut, first);
            tell(block, step + 1);
        }
        for (std::size_t at = first; at < cut.per_part; at += stride) {
            ++step;
            if (at + stride < cut.per_part) {
                push(block, all, cut, at + stride);
                tell(block, step + 1);
            }
            if (!together.sync(wait(waiter, block, step))) {
                return false;
            }
            reduce(block, all, cut, at);
        }
        if (step != before && block.thread_rank() == 0) {
            *made = step;  // all threads have read it: there was a sync in each step
        }
        return true;
    }

    /// Sends the chunk that begins at pack `at` of each peer's part.
    __host__ __device__ void push(const simt::ThreadBlock& block, const Buffers* all,
                                  const Cut& cut, std::size_t at) const {
        const int rank = rendezvous.rank;
        const int ranks = rendezvous.ranks;
        const std::size_t step = block.size();
        const auto* in = reinterpret_cast<const simt::Pack16*>(all[rank].in);
        const simt::Pack16* from[kMost];
        simt::Pack16* to[kMost];
        std::size_t end[kMost];
        SYMM_UNROLL
        for (int s = 1; s < kMost; ++s) {
            const int p = s < ranks ? (rank + s) % ranks : rank;
            from[s] = in + cut.pack(p, 0);
            to[s] = slot_of(p, rank);
            end[s] = s < ranks ? cut.end(p, at + chunk) : 0;
        }
        for (std::size_t i = at + block.thread_rank(); i < at + chunk; i += kAtOnce * step) {
            simt::Pack16 loaded[kAtOnce][kMost];
            SYMM_UNROLL
            for (int v = 0; v < kAtOnce; ++v) {
                SYMM_UNROLL
                for (int s = 1; s < kMost; ++s) {  // all loads before the first store
                    if (i + v * step < end[s]) {
                        loaded[v][s] = from[s][i + v * step];
                    }
                }
            }
            SYMM_UNROLL
            for (int v = 0; v < kAtOnce; ++v) {
                SYMM_UNROLL
                for (int s = 1; s < kMost; ++s) {
                    if (i + v * step < end[s]) {
                        to[s][i + v * step] = loaded[v][s];
                    }
                }
            }
        }
    }

    /// Tells the peers that the block's pushes up to number `step` are there.
    __host__ __device__ void tell(const simt::ThreadBlock& block, std::uint32_t step) const {
        block.sync();
        for (int p = static_cast<int>(block.thread_rank()); p < rendezvous.ranks;
             p += static_cast<int>(block.size())) {
            if (p != rendezvous.rank) {
                signal(&memory.of(p)->sent[block.group_index()][rendezvous.rank], step);
            }
        }
    }

    /// Waits for the peers that this thread serves.
    __host__ __device__ bool wait(simt::Waiter& waiter, const simt::ThreadBlock& block,
                                  std::uint32_t step) const {
        const int rank = rendezvous.rank;
        bool arrived = true;
        for (int p = static_cast<int>(block.thread_rank()); p < rendezvous.ranks;
             p += static_cast<int>(block.size())) {
            if (p != rank) {
                arrived &= wait_signal(waiter, &memory.of(rank)->sent[block.group_index()][p],
                                       {simt::Wait::kSignal, rank, p, step});
            }
        }
        return arrived;
    }

    /// Adds up the chunk that begins at pack `at` of this rank's part.
    __host__ __device__ void reduce(const simt::ThreadBlock& block, const Buffers* all,
                                    const Cut& cut, std::size_t at) const {
        const int rank = rendezvous.rank;
        const int ranks = rendezvous.ranks;
        PackReducer<T, simt::Pack16, kMost, kMost> reducer;
        reducer.sources = reducer.targets = ranks;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            const int target = p < ranks ? (rank + p) % ranks : rank;
            reducer.source[p] =
                p == rank || p >= ranks
                    ? reinterpret_cast<const simt::Pack16*>(all[rank].in) + cut.pack(rank, 0)
                    : slot_of(rank, p);
            // In this rank's order, so that not all ranks write to the same one at once.
            reducer.target[p] =
                reinterpret_cast<simt::Pack16*>(all[target].out) + cut.pack(rank, 0);
        }
        reducer.reduce(at + block.thread_rank(), block.size(), cut.end(rank, at + chunk),
                       reduction);
    }

    /// The slot of rank `sender` in the scratch memory of rank `receiver`.
    __host__ __device__ simt::Pack16* slot_of(int receiver, int sender) const {
        const auto before = static_cast<std::size_t>(sender - (sender > receiver ? 1 : 0));
        return scratch.of(receiver) + before * slot;
    }
};

}  // namespace symm
