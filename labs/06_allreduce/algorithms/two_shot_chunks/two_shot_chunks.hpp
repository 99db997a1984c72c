#pragma once
/// \file
/// AllReduce in two shots that only store: each rank pushes its input in chunks, and a flag follows
/// each chunk.
///
/// A load crosses the link twice, as a request and as data; a store crosses it once. Between two
/// H100s, loads reach 337 GB/s, and stores 366. In two_shot.hpp, each rank loads its peers' inputs.
/// Here the peers push them instead: rank p adds up part p, and has a slot for each peer's part p,
/// in scratch memory that it shares with the copy engine's calls (peer_slots.hpp).
///
/// Each part is cut into chunks. Block b of every rank handles chunks b, b + G, b + 2G and so on of
/// all parts, where G is the number of blocks in the grid. The rendezvous and the end happen once
/// per call. Step i of block b of rank r, where c is the block's i-th chunk:
///
/// | step       | who         | does                                    | to what                   | order   | why |
/// |------------|-------------|-----------------------------------------|---------------------------|---------|-----|
/// | rendezvous | all threads | meet block b of all ranks               |                           | acquire | scratch memory and outputs are free, and each rank knows where the outputs are (rendezvous.hpp) |
/// | push i     | all threads | store chunk c of part p of `in`, for all peers p | slot r of rank p | plain   | before the release |
/// | tell i     | thread p, after `block.sync()` | stores the step's number      | rank p's `sent[b][r]` | release | rank p may read the chunk once it sees this number |
/// | wait i     | thread p    | polls until the flag reaches the number | its own `sent[b][p]`      | acquire | |
/// | wait i     | all threads | `AbortBarrier::sync`                    |                           | block   | no thread reads before all chunks have arrived; if one thread gives up, all leave |
/// | reduce i   | all threads | add up chunk c of part r, from the rank's own `in` and its slots | every rank's `out` | plain | before the release of the barrier |
/// | end        | all threads | pass a barrier with block b of all ranks |                          | release, acquire | all sums have arrived, and all slots have been read |
///
/// A block does push i + 1 before wait i, so it adds up one chunk while the next is on its way.
///
/// - No deadlock: in step i, block b waits for push i of block b of each peer, and each of those
///   blocks does push i before it waits in step i. No block waits for another block of its rank.
///   All blocks of all ranks run at the same time.
/// - No chunk is overwritten: within a call each chunk has its own place in scratch memory, so no
///   flow control is needed.
/// - The next call cannot overtake this one: a rank's next kernel begins when all its blocks have
///   passed the end, and each block pushes only after a rendezvous with the peers' next kernels.
/// - An old flag cannot pass for a new one: each block counts its steps in device memory, and goes
///   on counting in the next call, so flags only grow. Parts may differ in length, but all ranks
///   make as many steps as the longest part needs. The numbers may wrap. All ranks must have grids
///   and chunks of the same size.
/// - In place: block b of rank r overwrites chunk c of part r in rank p's `in` only after it has
///   received that chunk from rank p. It loads the chunk in its own `in` before it stores the sum.
/// - A rank that gives up tells its peers, since later copies may overwrite their slots
///   (peer_slots.hpp). Each block that passes the end checks whether its rank has been told; if so,
///   it fails the call. Then the rank's other blocks may leave before they reach the end, and the
///   call fails on the other peers, too.
/// - Elements after the last whole pack, or all elements if a buffer is not aligned, are reduced as
///   in two_shot.hpp: the rank that adds them up loads them from its peers.
///
/// `./lab explore chunks` runs every execution that the memory model allows, without copies.
/// Source: the algorithm is ours. Data followed by a flag with release is NCCL's protocol Simple
/// (src/device/prims_simple.h).

#include <cstddef>
#include <cstdint>

#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/06_allreduce/algorithms/peer_slots/peer_slots.hpp"
#include "labs/06_allreduce/algorithms/two_shot/two_shot.hpp"

namespace symm {

/// Each rank's memory for these calls: symmetric, zeroed before the first use.
struct ChunksMemory {
    /// Written by peers: `sent[b][r]` by block b of rank r.
    alignas(64) std::uint32_t sent[kMaxBarrierBlocks][kMaxBarrierRanks];
    /// Written by this rank: the number of steps that each block has made, modulo 2^32.
    std::uint32_t steps[kMaxBarrierBlocks];
};

/// Parameters of a call's kernel, for any type.
struct ChunksCall : TwoShotCall {
    SymmetricPointer<ChunksMemory> memory;
    Trust trust;
    PeerSlots slots;  ///< As large as a part, or larger.
    unsigned chunk;   ///< Packs per chunk, at least 1.
};

/// The kernel, for at most kMost ranks: room for their packs in registers.
template <class T, int kMost>
struct TwoShotChunks : ChunksCall {
    static constexpr std::size_t kElements = kPerPack<T, simt::Pack16>;
    static constexpr unsigned kMaxThreads = kMostThreads;
    static constexpr unsigned kSharedBytes = kMost * sizeof(Buffers);

    __host__ __device__ void operator()(const simt::ThreadBlock& block) const {
        if (all_reduce(block)) {
            trust.require(block, timeout);
        } else {
            trust.tell_peers(block);
        }
    }

private:
    /// Packs that a thread has in flight for each peer.
    static constexpr int kAtOnce = kMost <= 2 ? 8 : kMost <= 4 ? 4 : 2;

    /// How the packs are cut into parts. The last parts may be shorter, or empty.
    struct Cut {
        std::size_t packs;
        std::size_t per_part;

        /// The index of pack j of part p in the whole data.
        __host__ __device__ std::size_t pack(int p, std::size_t j) const {
            return static_cast<std::size_t>(p) * per_part + j;
        }
        /// The end of a chunk of part p: pack j of that part, or the part's end if it comes first.
        __host__ __device__ std::size_t end(int p, std::size_t j) const {
            const std::size_t begin = pack(p, 0);
            const std::size_t left = begin < packs ? packs - begin : 0;
            const std::size_t length = left < per_part ? left : per_part;
            return j < length ? j : length;
        }
    };

    /// Returns false, on all threads of the block, if one of them gave up.
    __host__ __device__ bool all_reduce(const simt::ThreadBlock& block) const {
        auto* const all = block.shared<Buffers>();
        if (!rendezvous.meet(block, timeout, all)) {
            return false;
        }
        const std::size_t packs = are_aligned(all, ranks) ? count / kElements : 0;
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

    /// The same on all ranks: the addresses at which they map a buffer differ by whole granules.
    __host__ __device__ static bool are_aligned(const Buffers* all, int ranks) {
        CUdeviceptr bits = 0;
        for (int p = 0; p < ranks; ++p) {
            bits |= all[p].in | all[p].out;
        }
        return bits % sizeof(simt::Pack16) == 0;
    }

    /// Makes all steps of the block. Returns false like all_reduce.
    __host__ __device__ bool reduce_chunks(const simt::ThreadBlock& block, const Buffers* all,
                                           std::size_t packs) const {
        const auto parts = static_cast<std::size_t>(ranks);
        const Cut cut{packs, (packs + parts - 1) / parts};
        const unsigned b = block.group_index();
        std::uint32_t* const made = &memory.of(rank)->steps[b];
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
            *made = step;  // all threads have read it: each step has a sync
        }
        return true;
    }

    /// Sends the chunk that begins at pack `at` of each peer's part.
    __host__ __device__ void push(const simt::ThreadBlock& block, const Buffers* all,
                                  const Cut& cut, std::size_t at) const {
        const std::size_t step = block.size();
        const auto* in = reinterpret_cast<const simt::Pack16*>(all[rank].in);
        const simt::Pack16* from[kMost];
        simt::Pack16* to[kMost];
        std::size_t end[kMost];
        SYMM_UNROLL
        for (int s = 1; s < kMost; ++s) {
            const int p = s < ranks ? (rank + s) % ranks : rank;
            from[s] = in + cut.pack(p, 0);
            to[s] = slots.of(p, rank);
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

    /// Tells the peers that the block's chunks up to step `step` have arrived.
    __host__ __device__ void tell(const simt::ThreadBlock& block, std::uint32_t step) const {
        block.sync();
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
             p += static_cast<int>(block.size())) {
            if (p != rank) {
                signal(&memory.of(p)->sent[block.group_index()][rank], step);
            }
        }
    }

    /// Waits for the flags of this thread's peers. Returns false if it gave up.
    __host__ __device__ bool wait(simt::Waiter& waiter, const simt::ThreadBlock& block,
                                  std::uint32_t step) const {
        bool arrived = true;
        for (int p = static_cast<int>(block.thread_rank()); p < ranks;
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
        PackReducer<T, simt::Pack16, kMost, kMost> reducer;
        reducer.sources = reducer.targets = ranks;
        SYMM_UNROLL
        for (int p = 0; p < kMost; ++p) {
            const int target = p < ranks ? (rank + p) % ranks : rank;
            reducer.source[p] =
                p == rank || p >= ranks
                    ? reinterpret_cast<const simt::Pack16*>(all[rank].in) + cut.pack(rank, 0)
                    : slots.of(rank, p);
            // Each rank begins with itself, so that not all ranks write to the same one at once.
            reducer.target[p] =
                reinterpret_cast<simt::Pack16*>(all[target].out) + cut.pack(rank, 0);
        }
        reducer.reduce(at + block.thread_rank(), block.size(), cut.end(rank, at + chunk),
                       reduction);
    }
};

}  // namespace symm
